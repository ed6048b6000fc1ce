/* eos.pml -- exactly-once Kafka sink for Spark: two-phase commit by the driver.
 *
 * One atomic step = one Kafka request (or one Spark log write). A process that is
 * never scheduled again is a crashed one; one that is scheduled late is a zombie.
 *
 * Size and world (-D):
 *   NB batches, R query runs, K slots
 *   NONDET     a replay may put the rows of a batch in other partitions (variant 0/1)
 *   HALF       a task produces in two requests, so that a foreign EndTxn(abort) in
 *              between is visible (the coordinator opens a new txn, same epoch)
 *   EMPTYB=n   batch n has no rows: nothing is prepared, nothing is decided
 * Fault budgets (-D, default 0):
 *   NTIMEOUT   a transaction times out (EARLYT: only while no commit() is in progress)
 *   NSESSION   the session of the group's member ends
 *   NABANDON   commit() is interrupted and lives on while abort() runs
 *   NZTASK     a second attempt of a task runs whenever it likes
 *   NTDIE      a task dies with its transaction open, and reports nothing
 *   NFAIL      a step of abort() or of a plan's sweep raises; its processes live on
 *   NHIDE      a list of open transactions misses one (its coordinator is moving)
 *   NREPLY     the log's answer to the decisive request is lost
 * What is asserted:
 *   (1) no commit before the decision, no abort after it; (2) no row twice;
 *   (3) past the batch: each row once; (4) the last run ends, and with
 *   QUIETCHK a run that began with no other process alive and met no fault does not
 *              fail, and after its plan no transaction holds up readers
 *   NOHUMAN    the "operator needed" stop is never reached
 * Mutations (-D), one rule taken back each:
 *   NO_PLANREAD   a plan trusts the decision that its process remembers
 *   NO_CAS        a writer of the log does not compare
 *   NO_WITNESS    fenced or wrong state at settle is taken for lost
 *   NO_VOID       abort and recovery do not void
 *   NO_SWEEP      abort whatever is open at that moment instead of what was listed
 *   NO_SLOT       slot = batch mod K instead of the other one than the decision's
 *   NO_REPLAN     a planner that has recovered never lists again
 *   M_SEQONLY     it lists again only if the log's seq has not moved since its last plan
 *   NO_REOPEN     a fenced write of the log fails at once
 *   NO_RELIST     recovery only waits for the stable offset
 *   M_ABORTBLIND  abort() ends what was prepared without looking
 *   M_NOMEMBER, M_NOMEMBER_T   no group check in the decision, in the tasks
 *   M_NOSWEEP     nothing is listed or swept;  M_NOVOTE  no vote
 *   M_NOINIT      recovery reads the log before it inits the driver's id
 *   NOA1          assertion (1) about aborts is off, to see what follows
 */
#ifndef NB
#define NB 2
#endif
#ifndef R
#define R 2
#endif
#ifndef K
#define K 2
#endif
#ifndef NTIMEOUT
#define NTIMEOUT 0
#endif
#ifndef NSESSION
#define NSESSION 0
#endif
#ifndef NABANDON
#define NABANDON 0
#endif
#ifndef NZTASK
#define NZTASK 0
#endif
#ifndef NTDIE
#define NTDIE 0
#endif
#ifndef NFAIL
#define NFAIL 0
#endif
#ifndef NHIDE
#define NHIDE 0
#endif
#ifndef NREPLY
#define NREPLY 0
#endif
#ifndef EMPTYB
#define EMPTYB 99
#endif
/* (1) never abort after the decision; -DNOA1 to see what follows when it is broken */
#ifdef NOA1
#define A1(x) skip
#else
#define A1(x) assert(x)
#endif
/* -DEARLYT: transactions time out only while no commit() is in progress (before the vote) */
#if defined(EARLYT) && R == 2
#define TGUARD && creq[0] == 0 && creq[1] == 0
#else
#define TGUARD
#endif
#define NP 2
#define NT (K*NP)
#define EMPTY 0
#define ONG 1
#define CC 2
#define CA 3
/* results of EndTxn */
#define OKAY 1
#define BAD 2            /* PRODUCER_FENCED or INVALID_TXN_STATE */
/* result of a run */
#define RUNNING 0
#define DONE 1
#define ERR 2
#define HUMAN 3

/* ---- transaction coordinator: task ids (slot*NP+p) ---- */
byte ep[NT];             /* epoch; the producer id is fixed */
byte st[NT];
byte cb[NT];             /* batch in the open txn */
bit  cv[NT];             /* variant in the open txn */
byte half[NT];           /* which halves of the rows are in the open txn */
bit  off[NT];            /* group offset pending in the open txn */
#ifndef NO_WITNESS
short cmt[NT];           /* bit e: the txn of epoch e was committed (what the data tells) */
#endif
/* ---- driver id: its open decision txn ---- */
byte dep;
bit  dong;
byte pb, pseq, ps; byte pe[NP]; bit pv[NP];
/* ---- decision log: Q's latest committed record ---- */
byte lb;                 /* batch+1; 0: none */
byte lseq, ls; byte le[NP]; bit lv[NP];
#if NREPLY
byte lw;                 /* its writer: the driver epoch it was written under */
#endif
/* ---- group ---- */
byte member, mc;         /* current static member (0: empty), member ids given */
/* ---- Spark's logs ---- */
byte clog, olog;         /* batches in the commit log / in the offset log */
/* ---- what a read_committed reader sees: copies of (batch,row), per half ---- */
byte vis[4*NB];
/* ---- runs ---- */
bit  started[R], reuse[R], alive[R];
byte res[R];
byte plm;                /* planner process kept by the driver JVM: its member (0: not recovered) */
byte plq, plb, pls, ple[NP];   /* and what it planned from last: seq and decision */
#ifdef NO_PLANREAD
byte qb, qseq, qs; byte qe[NP]; bit qv[NP]; bit ql[NP];   /* and its cached decision */
#endif
/* request to the committer of a run: 1 run it, 2 done well, 3 raised */
byte creq[R]; byte cm_b[R], cm_mem[R], cm_seq[R], cm_s[R];
byte cm_e0[R], cm_e1[R]; bit cm_n0[R], cm_n1[R]; bit cm_v0[R], cm_v1[R];
/* zombie task attempt */
byte z; byte zt, zb, zmem, zrun; bit zv;
byte ntimeout = NTIMEOUT, nsession = NSESSION, nabandon = NABANDON, nztask = NZTASK,
     ntdie = NTDIE, nfail = NFAIL, nhide = NHIDE, nreply = NREPLY;
byte quiet;              /* 1+run: this run has met no fault and no other process */

#if K > 1
#define NOPENDING (!off[0] && !off[1] && !off[2] && !off[3])
#define LISTED (sl[0] || sl[1] || sl[2] || sl[3])
#define UNDECIDED (UND(0) || UND(1) || UND(2) || UND(3))
#else
#define NOPENDING (!off[0] && !off[1])
#define LISTED (sl[0] || sl[1])
#define UNDECIDED (UND(0) || UND(1))
#endif
#define UND(t) (st[t] == ONG && !(bb != 0 && (t)/NP == bs && be[(t)%NP] == ep[t]))
#define NOQUIET quiet = 0
#define DECIDED(t,e) (lb != 0 && (t)/NP == ls && le[(t)%NP] == (e))
#define ROW(p,v) ((v) -> 1-(p) : (p))

inline clr(t) { cb[t] = 0; cv[t] = 0; half[t] = 0; off[t] = 0 }

/* InitProducerId: aborts an open txn, bumps the epoch */
inline INITPID(t) { printf("MSC: pid%d InitProducerId id%d -> epoch %d (was st %d)\n", _pid, t, ep[t]+1, st[t]); st[t] = EMPTY; clr(t); ep[t]++; assert(ep[t] < 15) }

/* EndTxn(commit) */
inline COMMIT_T(t,e,r) {
  if
  :: ep[t] != e -> printf("MSC: pid%d EndTxn(commit) id%d epoch %d: FENCED\n", _pid, t, e); r = BAD
  :: ep[t] == e && st[t] == ONG ->
       assert(DECIDED(t,e));                        /* (1) never before the decision */
       if :: half[t] & 1 -> vis[cb[t]*4 + ROW((t)%NP,cv[t])*2]++ :: else fi;
       if :: half[t] & 2 -> vis[cb[t]*4 + ROW((t)%NP,cv[t])*2 + 1]++ :: else fi;
       assert(vis[cb[t]*4 + ROW((t)%NP,cv[t])*2] < 2 && vis[cb[t]*4 + ROW((t)%NP,cv[t])*2+1] < 2);   /* (2) */
#ifndef NO_WITNESS
       cmt[t] = cmt[t] | (1 << e);
#endif
       printf("MSC: pid%d EndTxn(commit) id%d epoch %d: committed\n", _pid, t, e);
       st[t] = CC; clr(t); r = OKAY
  :: ep[t] == e && st[t] == CC -> r = OKAY
  :: ep[t] == e && (st[t] == CA || st[t] == EMPTY) -> printf("MSC: pid%d EndTxn(commit) id%d epoch %d: WRONG STATE\n", _pid, t, e); r = BAD
  fi }

/* EndTxn(abort): the epoch stays */
inline ABORT_T(t,e) {
  if
  :: ep[t] == e && st[t] == ONG -> printf("MSC: pid%d EndTxn(abort) id%d epoch %d\n", _pid, t, e);
       A1(!DECIDED(t,e));                       /* (1) never after the decision */
       st[t] = CA; clr(t)
  :: else
  fi }

/* settle entry p of the base decision; lost[p] says that it must be written again */
inline SETTLE1(ID,p) {
  atomic { alive[ID] ->
    if
    :: be[p] != 0 ->
         COMMIT_T(bs*NP+p, be[p], r);
#ifndef NO_WITNESS
         lost[p] = (r == BAD && !((cmt[bs*NP+p] >> be[p]) & 1));
#else
         lost[p] = (r == BAD);
#endif
         r = 0
    :: else -> lost[p] = 0
    fi } }

inline READLOG() { printf("MSC: pid%d reads log: decision of batch %d, seq %d\n", _pid, lb-1, lseq); bb = lb; bseq = lseq; bs = ls; be[0] = le[0]; be[1] = le[1]; bv[0] = lv[0]; bv[1] = lv[1] }

/* one transactional write of the driver: offset commit checked against the group, then EndTxn */
inline DRV_SEND(nb,ns,n0,n1,w0,w1,nseq,mm) {
  if
  :: dep != myd -> printf("MSC: pid%d log write FENCED\n", _pid); ok = 0; fen++
#ifdef M_NOMEMBER
  :: dep == myd -> dong = 1; pb = nb; ps = ns; pe[0] = n0; pe[1] = n1; pv[0] = w0; pv[1] = w1; pseq = nseq
#else
  :: dep == myd && member == mm -> printf("MSC: pid%d sends record+offset of batch %d (open)\n", _pid, nb-1); dong = 1; pb = nb; ps = ns; pe[0] = n0; pe[1] = n1; pv[0] = w0; pv[1] = w1; pseq = nseq
  :: dep == myd && member != mm -> printf("MSC: pid%d log write REFUSED (member)\n", _pid); ok = 0; fen = 0
#endif
  fi }
inline DRV_CLR() { dong = 0; pb = 0; ps = 0; pe[0] = 0; pe[1] = 0; pv[0] = 0; pv[1] = 0; pseq = 0 }
#if NREPLY
#define WRITER lw = dep
#else
#define WRITER skip
#endif
inline DRV_END() {
  if
  :: dep == myd && dong -> printf("MSC: pid%d log record durable: batch %d seq %d epochs %d %d\n", _pid, pb-1, pseq, pe[0], pe[1]); lb = pb; ls = ps; le[0] = pe[0]; le[1] = pe[1]; lv[0] = pv[0]; lv[1] = pv[1]; lseq = pseq; WRITER; DRV_CLR();
#if NREPLY
     if :: nreply > 0 -> nreply--; NOQUIET; printf("MSC: pid%d its answer is LOST\n", _pid); w = myd; ok = 0; fen++ :: true fi
#endif
  :: else -> printf("MSC: pid%d log write FENCED\n", _pid); ok = 0; fen++
  fi }
inline DRV_INIT() { printf("MSC: pid%d inits driver id -> epoch %d\n", _pid, dep+1); dep++; DRV_CLR(); myd = dep }

/* compare: the log is at the seq that the writer planned from */
#ifndef NO_CAS
inline COMPARE(ID,seq) { atomic { alive[ID] -> if :: lseq != seq -> printf("MSC: pid%d compares: seq %d, planned from %d\n", _pid, lseq, seq); ok = 0 :: else fi } }
#else
inline COMPARE(ID,seq) { skip }
#endif

/* the log is open: write. Fenced, or no answer: open and compare once more, then send again */
inline REG_WRITE(ID,nb,ns,n0,n1,w0,w1,seq,mm) {
  fen = 0;
  do
  :: fen < 2 ->
     atomic { alive[ID] -> ok = 1; DRV_SEND(nb,ns,n0,n1,w0,w1,seq+1,mm) }
     if :: ok -> atomic { alive[ID] -> DRV_END() } :: else fi;
#ifdef NO_REOPEN
     break
#else
     if
     :: !ok && fen == 1 ->
        atomic { alive[ID] -> DRV_INIT() }
        ok = 1;
#if NREPLY
        if
        :: w != 0 -> atomic { alive[ID] -> if :: lw == w && lseq == seq+1 -> printf("MSC: pid%d reads its own record\n", _pid); fen = 3 :: else fi; w = 0 }
           if :: fen == 3 -> break :: else fi
        :: else
        fi;
#endif
        COMPARE(ID,seq);
        if :: ok :: else -> break fi
     :: else -> break
     fi
#endif
  :: else -> break
  od;
  fen = 0 }

/* task: init | produce + send offsets (HALF: produce, send offsets | produce) */
inline SENDOFF(t,e,mm) {
  if
#ifdef M_NOMEMBER_T
  :: true -> off[t] = 1
#else
  :: member == mm -> off[t] = 1
  :: else -> ABORT_T(t,e); ok = 0                  /* refused: aborts its own txn at once */
#endif
  fi }
inline PRODUCE(t,e,b,v,h) {
  if
  :: ep[t] == e -> printf("MSC: pid%d produces to id%d epoch %d batch %d half %d\n", _pid, t, e, b, h); st[t] = ONG; cb[t] = b; cv[t] = v; half[t] = half[t] | h   /* also from CA: a new txn, same epoch */
  :: else -> ok = 0
  fi }
inline WRITE(ID,t,e,b,v,mm) {
  atomic { alive[ID] -> ok = 1; INITPID(t); e = ep[t] }
#ifdef HALF
  atomic { alive[ID] -> PRODUCE(t,e,b,v,1); if :: ok -> SENDOFF(t,e,mm) :: else fi }
  atomic { alive[ID] -> if :: ok -> PRODUCE(t,e,b,v,2) :: else fi }
#else
  atomic { alive[ID] -> PRODUCE(t,e,b,v,3); if :: ok -> SENDOFF(t,e,mm) :: else fi }
#endif
}

/* list Q's open txns that are not decided */
inline LIST_() { i = 0;
    do :: i < NT -> if :: UND(i) -> sl[i] = ep[i] :: else -> sl[i] = 0 fi;
#if NHIDE
       if :: sl[i] != 0 && nhide > 0 -> nhide--; NOQUIET; printf("MSC: pid%d list misses id%d\n", _pid, i); sl[i] = 0 :: true fi;
#endif
       i++ :: else -> break od; i = 0 }
inline LIST(ID) { atomic { alive[ID] -> LIST_() } }
/* abort exactly what was listed: EndTxn(abort) under the listed epoch (it leaves the epoch as it is) */
inline SWEEP(ID) { i = 0;
#ifndef NO_SWEEP
    do :: i < NT && sl[i] == 0 -> i++
       :: i < NT && sl[i] != 0 -> atomic { alive[ID] -> ABORT_T(i,sl[i]); sl[i] = 0; i++ }
#else
    do :: i < NT -> atomic { alive[ID] -> if :: UND(i) -> ABORT_T(i,ep[i]) :: else fi; sl[i] = 0; i++ }
#endif
       :: i >= NT -> break od; i = 0 }
inline UNLIST() { i = 0; do :: i < NT -> sl[i] = 0; i++ :: else -> break od; i = 0 }

/* the latest record once more, under the next seq */
#ifndef NO_VOID
inline VOID(ID) {
  printf("MSC: pid%d voids\n", _pid);
  REG_WRITE(ID,bb,bs,be[0],be[1],bv[0],bv[1],bseq,mem);
  if :: ok -> bseq++ :: else fi }
#else
inline VOID(ID) { atomic { alive[ID] -> ok = 1;
#if !defined(NO_SWEEP) && !defined(M_NOMEMBER)
    if :: member != mem -> ok = 0 :: else fi
#endif
  } }
#endif

/* a step raises, and the process lives on */
#if NFAIL
#define MAYFAIL if :: atomic { nfail > 0 -> nfail--; NOQUIET; printf("MSC: pid%d this step raises\n", _pid) }; goto fail :: true fi
#else
#define MAYFAIL skip
#endif

/* Does a plan of a process that has planned before look for leftovers? Not if the one record since
   its last plan is a new decision. The seq alone does not tell: a void whose sweep failed moves it. */
#ifdef M_SEQONLY
#define LOOK (bseq == pq)
#else
#define LOOK (bseq != pq+1 || (bb == pb_ && bs == ps_ && be[0] == pe_[0] && be[1] == pe_[1]))
#endif
/* an open txn that this plan leaves to hold up readers: a lost partition's is ended when its task inits */
#define HOLDS(t) (st[t] == ONG && !(bb == b+1 && (t)/NP == bs && lost[(t)%NP]))
#if K > 1
#define HELDUP (HOLDS(0) || HOLDS(1) || HOLDS(2) || HOLDS(3))
#else
#define HELDUP (HOLDS(0) || HOLDS(1))
#endif

/* a task is gone after its last request, its transaction open, and the batch is given up */
#if NTDIE
#define TASKDIES(e) if :: atomic { ok && ntdie > 0 -> ntdie--; NOQUIET; e = 0; printf("MSC: run %d: a task dies with its transaction open\n", id) }; goto abort :: true fi
#else
#define TASKDIES(e) skip
#endif

proctype Run(byte id) {
  byte mem, b, r, i, bb, bseq, bs, myd, s, e0, e1, att, fen, pq, pb_, ps_; byte pe_[NP];
#if NREPLY
  byte w;                      /* a record of this process whose outcome is unknown */
#endif
  byte be[NP], sl[NT]; bit bv[NP], lost[NP];
  bit ok, n0, n1, v, rec, rep; /* n: written by this run; rep: a task has reported; rec: this planner process has recovered */
  started[id];
  if
  :: reuse[id] -> atomic { mem = plm; rec = (mem != 0); pq = plq; pb_ = plb; ps_ = pls; pe_[0] = ple[0]; pe_[1] = ple[1] }
#ifdef NO_PLANREAD
       bb = qb; bseq = qseq; bs = qs; be[0] = qe[0]; be[1] = qe[1]; bv[0] = qv[0]; bv[1] = qv[1]; lost[0] = ql[0]; lost[1] = ql[1];
#endif
  :: else
  fi;
  atomic { alive[id] -> b = clog;
    if :: b == NB -> res[id] = DONE; goto end :: b < NB && olog < b+1 -> olog = b+1 :: else fi }

plan:
  if
  :: rec ->
#ifndef NO_PLANREAD
     /* member replaced: fail once and forget the state; the next run recovers */
     atomic { alive[id] -> ok = 1;
       if
       :: member == mem -> READLOG()
       :: member == 0 -> rec = 0; goto plan           /* session expired: recover again */
       :: else -> ok = 0; mem = 0; rec = 0
       fi }
     if :: !ok -> goto fail :: else fi;
     SETTLE1(id,0); SETTLE1(id,1);
#if !defined(NO_REPLAN) && !defined(M_NOSWEEP)
     /* the plan before came to nothing, or the log has moved otherwise than by its decision: list, and
        only if there is something, void and abort */
     if
     :: LOOK ->
        LIST(id);
        if
        :: LISTED ->
           MAYFAIL;
           atomic { alive[id] -> DRV_INIT() }
           ok = 1;
           COMPARE(id,bseq);
           if :: ok -> VOID(id) :: else fi;
           if :: !ok -> goto fail :: else fi;
           MAYFAIL;
           SWEEP(id)
        :: else
        fi
     :: else
     fi
#endif
#else
     /* the consumer rejoins by itself after a session timeout */
     atomic { alive[id] -> if :: member == 0 -> mc++; mem = mc; member = mc; printf("MSC: run %d consumer rejoins by itself as member %d\n", id, mc) :: else fi }
#endif
  :: !rec ->
     /* the time-out is checked with an InitProducerId of the driver's id, before the group is joined */
#ifndef NOCHECK
     atomic { alive[id] -> DRV_INIT() }
#endif
     atomic { alive[id] -> mc++; mem = mc; member = mc; printf("MSC: pid%d run %d joins as member %d\n", _pid, id, mc) }
#ifndef M_NOINIT
     atomic { alive[id] -> DRV_INIT() }
#endif
     atomic { alive[id] -> READLOG() }
#ifdef M_NOINIT
     atomic { alive[id] -> DRV_INIT() }
#endif
     SETTLE1(id,0); SETTLE1(id,1);
     LIST(id);
     VOID(id);
     if :: !ok -> mem = 0; goto fail :: else fi;
#ifndef M_NOSWEEP
     SWEEP(id);
#endif
     /* require_stable: answers when none of Q's transactions is pending */
     do
     :: atomic { alive[id] && NOPENDING -> rec = 1 }; break
     :: atomic { alive[id] && member != mem -> mem = 0 }; goto fail     /* replaced while waiting */
#if !defined(NO_RELIST) && !defined(M_NOSWEEP)
     :: atomic { alive[id] && !NOPENDING && UNDECIDED -> LIST_() }       /* and list again */
        if
        :: LISTED ->
           VOID(id);
           if :: !ok -> mem = 0; goto fail :: else fi;
           SWEEP(id)
        :: else
        fi
#endif
     od
  fi;
  atomic {
    pq = bseq; pb_ = bb; ps_ = bs; pe_[0] = be[0]; pe_[1] = be[1];
#ifdef QUIETCHK
    assert(!(alive[id] && quiet == id+1 && HELDUP)); /* (4) no transaction is left that holds up readers */
#endif
    skip }

  /* tasks */
  if :: bb > b+1 -> goto fail :: else fi;           /* older than the decision: refused */
#ifndef NO_SLOT
  s = (bb == 0 -> b%K : (bb == b+1 -> bs : (bs+1)%K));
#else
  s = b%K;
#endif
#ifdef NONDET
  if :: v = 0 :: v = 1 fi;
#endif
  e0 = 0; e1 = 0; n0 = 0; n1 = 0; rep = 0; att = 0;
t0:
  if
  :: b == EMPTYB || (bb == b+1 && !lost[0]) -> rep = 1
  :: else ->
     if :: bb == b+1 && bv[0] != v -> res[id] = HUMAN; goto end :: else fi;   /* fingerprint */
     if
     :: atomic { nztask > 0 && z == 0 -> nztask--; z = 1; zt = s*NP; zb = b; zmem = mem; zv = v; NOQUIET }
     :: true
     fi;
     WRITE(id,s*NP,e0,b,v,mem);
     TASKDIES(e0);
     if :: ok -> n0 = 1; rep = 1 :: !ok && att == 0 -> att = 1; goto t0 :: else -> e0 = 0; goto abort fi
  fi;
  att = 0;
t1:
  if
  :: b == EMPTYB || (bb == b+1 && !lost[1]) -> rep = 1
  :: else ->
     if :: bb == b+1 && bv[1] != v -> res[id] = HUMAN; if :: n0 -> goto abort :: else -> goto end fi :: else fi;
     WRITE(id,s*NP+1,e1,b,v,mem);
     TASKDIES(e1);
     if :: ok -> n1 = 1; rep = 1 :: !ok && att == 0 -> att = 1; goto t1 :: else -> e1 = 0; goto abort fi
  fi;

  /* commit() in the committer process */
  atomic { alive[id] -> cm_b[id] = b; cm_mem[id] = mem; cm_seq[id] = bseq; cm_s[id] = s;
    cm_n0[id] = n0; cm_n1[id] = n1;
    if :: n0 -> cm_e0[id] = e0; cm_v0[id] = v :: bb == b+1 && !n0 -> cm_e0[id] = be[0]; cm_v0[id] = bv[0] :: else -> cm_e0[id] = 0; cm_v0[id] = 0 fi;
    if :: n1 -> cm_e1[id] = e1; cm_v1[id] = v :: bb == b+1 && !n1 -> cm_e1[id] = be[1]; cm_v1[id] = bv[1] :: else -> cm_e1[id] = 0; cm_v1[id] = 0 fi;
    creq[id] = 1 }
  if
  :: creq[id] == 2 -> skip
  :: creq[id] == 3 -> goto abort
  :: atomic { nabandon > 0 && creq[id] == 1 -> nabandon--; NOQUIET; printf("MSC: run %d: commit() interrupted, abort() called\n", id) }; goto abort   /* its message is lost; it may live on */
  fi;
  /* commit log, exclusive create; (3) */
  atomic { alive[id] ->
    if
    :: clog == b -> clog = b+1; printf("MSC: run %d commit log %d; visible %d %d\n", id, b, vis[b*4], vis[b*4+2]);
       if :: b != EMPTYB -> assert(vis[b*4] == 1 && vis[b*4+1] == 1 && vis[b*4+2] == 1 && vis[b*4+3] == 1) :: else fi;
       creq[id] = 0; b++
    :: else -> goto fail
    fi }
  if
  :: b == NB -> res[id] = DONE; goto end
  :: else -> atomic { alive[id] -> if :: olog == b -> olog = b+1 :: else -> goto fail fi }; goto plan
  fi;

abort:   /* a fresh process */
  atomic { alive[id] -> DRV_INIT() }
  atomic { alive[id] -> READLOG() }
#ifdef M_ABORTBLIND
  if :: n0 -> atomic { alive[id] -> ABORT_T(s*NP,e0) } :: else fi;
  if :: n1 -> atomic { alive[id] -> ABORT_T(s*NP+1,e1) } :: else fi;
#else
  SETTLE1(id,0); SETTLE1(id,1);
  /* without any report the plan is unknown, and with it the member: the next plan cleans up */
  if :: !rep -> goto fail :: else fi;
  LIST(id);
  MAYFAIL;
  VOID(id);
  if :: ok ->
     MAYFAIL;
     if :: n0 && !(bs == s && be[0] == e0) -> atomic { alive[id] -> ABORT_T(s*NP,e0) } :: else fi;
     if :: n1 && !(bs == s && be[1] == e1) -> atomic { alive[id] -> ABORT_T(s*NP+1,e1) } :: else fi;
#ifndef M_NOSWEEP
     SWEEP(id)
#endif
  :: else fi;
#endif

fail:
  printf("MSC: run %d stops with an error\n", id);
  if :: res[id] == RUNNING -> res[id] = ERR :: else fi;
#ifdef QUIETCHK
  assert(!(res[id] == ERR && quiet == id+1));        /* (4) no livelock */
#endif
end:
#ifdef NOHUMAN
  assert(res[id] != HUMAN);
#endif
  atomic { plm = mem; plq = pq; plb = pb_; pls = ps_; ple[0] = pe_[0]; ple[1] = pe_[1];
#ifdef NO_PLANREAD
    if :: rec -> qb = bb; qseq = bseq; qs = bs; qe[0] = be[0]; qe[1] = be[1]; qv[0] = bv[0]; qv[1] = bv[1]; ql[0] = lost[0]; ql[1] = lost[1] :: else -> plm = 0 fi;
#else
    if :: !rec -> plm = 0 :: else fi;
#endif
    if :: plm == 0 -> plq = 0; plb = 0; pls = 0; ple[0] = 0; ple[1] = 0 :: else fi;
    UNLIST();
    b = 0; r = 0; i = 0; bb = 0; bseq = 0; bs = 0; myd = 0; s = 0; e0 = 0; e1 = 0; att = 0; be[0] = 0; be[1] = 0; bv[0] = 0; bv[1] = 0; lost[0] = 0; lost[1] = 0;
    ok = 0; n0 = 0; n1 = 0; v = 0; rec = 0; rep = 0; mem = 0; fen = 0; pq = 0; pb_ = 0; ps_ = 0; pe_[0] = 0; pe_[1] = 0 }
}

/* commit() of run id; may outlive the run's interest in it */
proctype Committer(byte id) {
  byte myd, r, fen; bit ok;
#if NREPLY
  byte w;
#endif
end_idle:
  do
  :: creq[id] == 1 -> ok = 1;
     if
     :: !cm_n0[id] && !cm_n1[id] -> skip             /* everything was skipped, or there are no rows */
     :: else ->
        atomic { alive[id] -> DRV_INIT() }
        COMPARE(id,cm_seq[id]);
#ifndef M_NOVOTE
        if :: ok && cm_n0[id] -> atomic { alive[id] -> if :: ep[cm_s[id]*NP] == cm_e0[id] && st[cm_s[id]*NP] == ONG :: else -> ok = 0 fi } :: else fi;
        if :: ok && cm_n1[id] -> atomic { alive[id] -> if :: ep[cm_s[id]*NP+1] == cm_e1[id] && st[cm_s[id]*NP+1] == ONG :: else -> ok = 0 fi } :: else fi;
#endif
        if :: ok -> REG_WRITE(id,cm_b[id]+1,cm_s[id],cm_e0[id],cm_e1[id],cm_v0[id],cm_v1[id],cm_seq[id],cm_mem[id]) :: else fi;
        if :: ok && cm_n0[id] -> atomic { alive[id] -> COMMIT_T(cm_s[id]*NP, cm_e0[id], r); if :: r == BAD -> ok = 0 :: else fi; r = 0 } :: else fi;
        if :: ok && cm_n1[id] -> atomic { alive[id] -> COMMIT_T(cm_s[id]*NP+1, cm_e1[id], r); if :: r == BAD -> ok = 0 :: else fi; r = 0 } :: else fi
     fi;
     atomic { myd = 0; creq[id] = (ok -> 2 : 3); ok = 0 }
  od
}

/* a zombie task attempt of any run: does its steps whenever it likes */
proctype ZTask() {
  byte e; bit ok;
end_z:
  z == 1;
  atomic { ok = 1; INITPID(zt); e = ep[zt] }
#ifdef HALF
  atomic { PRODUCE(zt,e,zb,zv,1); if :: ok -> SENDOFF(zt,e,zmem) :: else fi }
  atomic { if :: ok -> PRODUCE(zt,e,zb,zv,2) :: else fi }
#else
  atomic { PRODUCE(zt,e,zb,zv,3); if :: ok -> SENDOFF(zt,e,zmem) :: else fi }
#endif
  atomic { e = 0; ok = 0; z = 2; zt = 0; zb = 0; zmem = 0; zv = 0 }
}

proctype Fault() {
end_f:
  do
  :: atomic { ntimeout > 0 TGUARD && st[0] == ONG -> ntimeout--; printf("MSC: timeout\n"); INITPID(0); NOQUIET }
  :: atomic { ntimeout > 0 TGUARD && st[1] == ONG -> ntimeout--; printf("MSC: timeout\n"); INITPID(1); NOQUIET }
#if K > 1
  :: atomic { ntimeout > 0 TGUARD && st[2] == ONG -> ntimeout--; printf("MSC: timeout\n"); INITPID(2); NOQUIET }
#endif
#if K > 1
  :: atomic { ntimeout > 0 TGUARD && st[3] == ONG -> ntimeout--; printf("MSC: timeout\n"); INITPID(3); NOQUIET }
#endif
  :: atomic { ntimeout > 0 && dong -> ntimeout--; dep++; DRV_CLR(); NOQUIET }
  :: atomic { nsession > 0 && member != 0 -> nsession--; printf("MSC: session timeout: group empty\n"); member = 0; NOQUIET }
  od
}

init {
  byte i;
  atomic {
    i = 0;
    do :: i < R -> alive[i] = 1; run Run(i); run Committer(i); i++ :: else -> break od;
    run ZTask(); run Fault();
    i = 1; started[0] = 1; quiet = 1 }
  /* a new run at any moment: the older one has stopped, or is dead, or lives on as a zombie */
  do
  :: atomic { i < R && clog < NB ->
       if
       :: res[i-1] == RUNNING -> alive[i-1] = 0      /* crashed */
       :: res[i-1] == RUNNING                        /* zombie */
       :: res[i-1] == ERR && plm != 0 -> reuse[i] = 1      /* same driver JVM, planner process kept */
       :: res[i-1] == ERR -> plm = 0; plq = 0; plb = 0; pls = 0; ple[0] = 0; ple[1] = 0      /* a fresh planner process */
       fi;
       if :: (z != 1) && (res[i-1] != RUNNING || !alive[i-1]) && creq[i-1] != 1 && (i < 2 || ((res[0] != RUNNING || !alive[0]) && creq[0] != 1)) -> quiet = i+1 :: else -> quiet = 0 fi;
       started[i] = 1; printf("MSC: run %d starts; run %d res %d alive %d reuse %d\n", i, i-1, res[i-1], alive[i-1], reuse[i]); i++ }
  :: clog == NB -> break
  :: i == R -> break
  od;
  /* nothing can move: the last run must have ended */
  timeout -> assert(i == 0 || res[i-1] != RUNNING)
}
