/* eos.pml -- the protocol of eos_sink as a model for Spin.
 *
 * One atomic step = one Kafka request (or one write of Spark's own logs). A process that is never
 * scheduled again is a crashed one; one that is scheduled late is a zombie. Names in brackets are
 * those of the code.
 *
 * Size and world (-D):
 *   NB batches of a stream, R runs of the query, K slots, NP partitions (1 or 2)
 *   NONDET     a replay may put the rows of a batch in other partitions (variant 0/1)
 *   GROW       a replay may have more rows than before (variant 1: a checkpoint's older copy)
 *   HALF       a task produces in two requests, so that a foreign EndTxn(abort) in between is
 *              visible (the coordinator opens a new transaction under the same epoch)
 *   FEW        of those a task with few rows: the group offset comes behind them only
 *   EMPTYB=n   batch n has no rows: nothing is prepared, nothing is decided
 *   NOVERIFY   brokers before Kafka 3.6, which do not verify that a transaction is open before they
 *              append to it (with HALF)
 *   OLD        the query has run before: a batch is decided, each of its transactions committed,
 *              open or lost
 *   OLD=2      ... each committed, and forgotten by its coordinator; either Spark has noted the batch,
 *              or the record says that it is settled; NWITNESS is about that batch only
 *   AGAIN      the query is started again after an operator stop too
 *   KEEP       the process of commit() and abort() is kept, over restarts too: it opens the log in the
 *              background when a commit() has returned
 *   INLINE     a task may hand its rows to the driver, which writes them in the transaction of the
 *              decision: any task (1), or all of them (2)
 * Fault budgets (-D, default 0):
 *   NTIMEOUT   a transaction times out (EARLYT: only what is not decided, and while no commit() is
 *              in progress)
 *   NSESSION   the session of the group's member ends
 *   NABANDON   commit() is interrupted and lives on while abort() runs
 *   NZTASK     a second attempt of a task runs whenever it likes
 *   NTDIE      a task dies with its transaction open, and reports nothing
 *   NFAIL      a step of abort() or of a plan's own abort raises; its processes live on
 *   NHIDE      a list of open transactions misses one (its coordinator is moving); recovery copes
 *   NSTALE     a read of the log ends before its latest record (a deposed leader answers)
 *   NFORGET    a coordinator forgets a completed transaction (transactional.id.expiration.ms)
 *   NREPLY     the log's answer to the decisive request is lost
 *   NLATE      the driver's EndTxn(commit) is repeated, and one copy arrives later; or it has no answer,
 *              and arrives later or never. With INLINE each partition's rows are a request of their own
 *   NWITNESS   reading a witness fails: unreadable, or no answer in time
 *   NDELETE    the checkpoint is deleted, or a deleted one put back: another stream id
 *   NRESTORE   the checkpoint is put back by one batch
 *   NENDING    the driver's transaction ends, but a partition has no leader: until it gets its marker
 *              the driver's id takes neither an init nor a transaction
 *   FOREVER    ... and it never gets one
 * What is asserted:
 *   (1) no commit before the decision, no abort by the sink after it
 *   (2) no row visible twice
 *   (3) past the batch: each of its rows visible once
 *   (4) the last run ends; with QUIETCHK a run that began with no other process alive and met no
 *       fault does not fail, and after its plan no transaction holds up readers
 *   NOHUMAN    the stop for an operator is not reached
 *   LIVE       nothing of (4) but two formulas, under weak fairness: `ends` and `closed`
 * Mutations (-D), one rule taken back each: see run.sh and README.md.
 *   NOA1 is none: (1) is off, to see what a reader gets.
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
#ifndef NP
#define NP 2
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
#ifndef NSTALE
#define NSTALE 0
#endif
#ifndef NFORGET
#define NFORGET 0
#endif
#ifndef NREPLY
#define NREPLY 0
#endif
#ifndef NLATE
#define NLATE 0
#endif
#ifndef NWITNESS
#define NWITNESS 0
#endif
#ifndef NDELETE
#define NDELETE 0
#endif
#ifndef NRESTORE
#define NRESTORE 0
#endif
#ifndef NENDING
#define NENDING 0
#endif
#ifndef INLINE
#define INLINE 0
#endif
#ifndef M_DOUBTANY
#define M_DOUBTANY 0
#endif
#ifndef EMPTYB
#define EMPTYB 99
#endif
#if defined(M_NOSWEEP) && !defined(LIVE)
#define NO_RELIST        /* what finds nothing for ever is no step: it is stuck */
#endif

/* batch number b of stream s is s*NB+b here; a checkpoint has its own logs */
#if NDELETE
#define NS 2
#else
#define NS 1
#endif
#define STREAM(g) ((g)/NB)
#define END_OF(s) (((s)+1)*NB)
/* M_SHAREDKEY: each run is another identity, with transactional ids, driver's id and group of its own */
#ifdef M_SHAREDKEY
#define NT (R*K*NP)
#define ID_(s,p) ((id*K+(s))*NP+(p))
#define OWN(t) ((t)/(K*NP) == id)
#else
#define NT (K*NP)
#define ID_(s,p) ((s)*NP+(p))
#define OWN(t) true
#endif
#define SLOT(t) ((t)/NP%K)

#if NP == 1
#define BOTH(F) F(0)
#define EITHER(F) F(0)
#else
#define BOTH(F) (F(0) && F(1))
#define EITHER(F) (F(0) || F(1))
#endif
#if NT == 1
#define ANYT(F) F(0)
#elif NT == 2
#define ANYT(F) (F(0) || F(1))
#else
#define ANYT(F) (F(0) || F(1) || F(2) || F(3))
#endif

#ifdef NOA1
#define A1(x) skip
#else
#define A1(x) assert(x)
#endif
#if defined(EARLYT) && R == 2
#define TGUARD(t) && creq[0] == 0 && creq[1] == 0 && !(DECIDED(t,ep[t]))
#else
#define TGUARD(t)
#endif

/* states of a transaction: Empty, Ongoing, CompleteCommit, CompleteAbort */
#define EMPTY 0
#define ONG 1
#define CC 2
#define CA 3
/* answers to EndTxn: done, or refused (PRODUCER_FENCED, INVALID_TXN_STATE, ...) */
#define OKAY 1
#define BAD 2
/* results of a run: ERR Spark may be started again; HUMAN OperatorNeededError */
#define RUNNING 0
#define DONE 1
#define ERR 2
#define HUMAN 3
/* in place of an epoch: the rows are in the transaction of the decision */
#define INL 15
#define OPENED(e) ((e) != 0 && (e) != INL)
/* what a settle could not learn: no answer in time; unreadable */
#define SILENT 1
#define DOUBT 2

/* ---- transaction coordinator: the tasks' ids (slot*NP + partition) ---- */
byte ep[NT];             /* epoch; the producer id is fixed */
byte st[NT];
byte cb[NT];             /* batch in the open transaction */
bit  cv[NT];             /* variant in the open transaction */
byte half[NT];           /* which halves of the rows are in the open transaction */
#ifdef NOVERIFY
byte hang[NT], hb[NT];   /* halves that a partition took after the end of their transaction; their batch */
#endif
bit  off[NT];            /* group offset pending in the open transaction */
#ifndef NO_WITNESS
short cmt[NT];           /* bit e: the transaction of epoch e was committed: what a witness tells */
#endif
/* ---- the driver's id: its open transaction on the log ---- */
#ifdef M_SHAREDKEY
typedef DRV { byte dep, pb, pseq, ps, pe[NP], member; bit dong, pv[NP], pset, pi[NP] };
DRV drv[R];
#define dep drv[id].dep
#define dong drv[id].dong
#define pb drv[id].pb
#define pseq drv[id].pseq
#define ps drv[id].ps
#define pe drv[id].pe
#define pv drv[id].pv
#define pset drv[id].pset
#define pi drv[id].pi
#define member drv[id].member
#else
byte dep;                /* who has it: the pid that inited it last; only that is compared */
bit  dong;
byte pb, pseq, ps; byte pe[NP]; bit pv[NP], pset;
#if INLINE
bit  pi[NP];             /* partitions whose rows are in it */
#endif
#endif
#if NLATE
bit  late;               /* an EndTxn(commit) with the current epoch of the driver's id is under way */
bit  prec, pvoted;       /* the open transaction has the record; its vote is over, or needs none */
#endif
byte dend;               /* its last transaction waits for markers: 1 of an abort, 2 of a commit */
/* ---- decision log: the query's latest committed record ---- */
byte lb;                 /* batch+1; 0: none */
byte lseq, ls; byte le[NP]; bit lv[NP];  /* a record's offset is its number here */
bit  lset;               /* [settled] all of the decision was seen committed */
#if NDELETE
bit  lx;                 /* [retired] this one has followed the other stream */
#endif
#if NSTALE
byte ob, oseq, os, oe[NP]; bit ov[NP], oset;   /* the record before it */
#if NDELETE
bit  ox;
#endif
#endif
#if NREPLY + NLATE
byte lw;                 /* [writer] here the driver epoch that it was written under */
#endif
/* ---- group ---- */
#ifndef M_SHAREDKEY
byte member;             /* current static member: 1+run (+R: its second one; 0: none) */
#endif
/* ---- Spark's logs, one pair a checkpoint ---- */
byte clog[NS], olog[NS], cur;  /* next batch of the commit and offset log; checkpoint in use */
/* ---- what a read_committed reader sees: copies of (batch, row), or of its halves ---- */
#if defined(HALF) || defined(GROW)
#define NH 2
#else
#define NH 1
#endif
byte vis[NS*NB*NP*NH];
/* ---- runs ---- */
bit  started[R], reuse[R], alive[R+1], gone[R], cgone[R];   /* alive[R]: a late task */
byte res[R], last; bit fin;
#if NDELETE
byte rs[R];
#endif
/* the planner process that the driver JVM keeps: its member (0: not recovered) and [_view] */
byte plm, plq, plb, pls, ple[NP]; bit pll[NP], pld;
#ifdef NO_PLANREAD
bit  plv[NP];
#endif
/* request to the committer process of a run: 1 run it, 2 done well, 3 raised, 4 operator needed */
byte creq[R]; byte cm_b[R], cm_mem[R], cm_seq[R], cm_s[R];
byte cm_e[R*NP]; bit cm_n[R*NP], cm_v[R*NP];   /* epochs, written by this run?, variants */
bit  cm_rep[R], cm_bad[R];                      /* [replayed]; tallies differ from the decision's */
#ifdef KEEP
byte kh[R], kd[R]; bit kgone[R];   /* what the kept process of commit() and abort() holds */
#endif
/* a late attempt of a task */
byte z; byte zt, zb, zmem; bit zv;
byte ntimeout = NTIMEOUT, nsession = NSESSION, nabandon = NABANDON, nztask = NZTASK,
     ntdie = NTDIE, nfail = NFAIL, nhide = NHIDE, nstale = NSTALE, nforget = NFORGET,
     nreply = NREPLY, nlate = NLATE, nwitness = NWITNESS, ndelete = NDELETE, nrestore = NRESTORE, nending = NENDING;
byte quiet;              /* 1+run: this run has met no fault and no other process */

#define NOQUIET quiet = 0
#define OFF_(t) (off[t] && OWN(t))
#define NOPENDING (!(ANYT(OFF_)))
#define SL_(t) (sl[t] != 0)
#define LISTED (ANYT(SL_))
/* [undecided]: open, and not named by the decision that was read */
#ifdef M_UNDBYID
#define UND(t) (st[t] == ONG && OWN(t) && !(bb != 0 && SLOT(t) == bs && be[(t)%NP] != 0))
#else
#define UND(t) (st[t] == ONG && OWN(t) && !(bb != 0 && SLOT(t) == bs && be[(t)%NP] == ep[t]))
#endif
#define UNDECIDED (ANYT(UND))
#define ONG_(t) (st[t] == ONG)
#define DECIDED(t,e) (lb != 0 && SLOT(t) == ls && le[(t)%NP] == (e))
#ifdef GROW
#define ROW(p,v) (p)
#define PARTS(v) ((v) -> 3 : 1)
#define PARTS_D(v) PARTS(v)
#elif NP == 2
#define ROW(p,v) ((v) -> 1-(p) : (p))
#define PARTS(v) 1
#define PARTS_D(v) 3
#else
#define ROW(p,v) (p)
#define PARTS(v) 1
#define PARTS_D(v) 3
#endif
#define VIS(b,r,h) vis[((b)*NP+(r))*NH+(h)]
#if defined(GROW)
#define SEEN(p) (VIS(b,p,0) == 1 && VIS(b,p,1) == v)
#elif defined(HALF)
#define SEEN(p) (VIS(b,p,0) == 1 && VIS(b,p,1) == 1)
#else
#define SEEN(p) (VIS(b,p,0) == 1)
#endif

/* a dead process does nothing more, and forgets (so that its states fall together) */
#define LIVING(ID) if :: alive[ID] :: else -> goto dead fi

#define PASSED(q) (le[q] == 0 || VIS(lb-1, ROW(q,lv[q]), 0) == 1)

#ifdef NOVERIFY
#define NO_HANG(t) hang[t] = 0; hb[t] = 0      /* the marker ends these too */
#else
#define NO_HANG(t) skip
#endif
inline clr(t) { cb[t] = 0; cv[t] = 0; half[t] = 0; off[t] = 0; NO_HANG(t) }

/* InitProducerId: aborts an open transaction, raises the epoch */
inline INITPID(t) { printf("MSC: pid%d InitProducerId id%d -> epoch %d (was st %d)\n", _pid, t, ep[t]+1, st[t]); if :: st[t] == ONG -> clr(t) :: else fi; st[t] = EMPTY; ep[t]++; assert(ep[t] < 15) }

/* EndTxn(commit) */
inline COMMIT_T(t,e,r) {
  if
  :: ep[t] != e -> printf("MSC: pid%d EndTxn(commit) id%d epoch %d: FENCED\n", _pid, t, e); r = BAD
  :: ep[t] == e && st[t] == ONG ->
       A1(DECIDED(t,e));                            /* (1) never before the decision */
       if :: half[t] & 1 -> VIS(cb[t], ROW((t)%NP,cv[t]), 0)++; assert(VIS(cb[t], ROW((t)%NP,cv[t]), 0) < 2) /* (2) */ :: else fi;
#if NH == 2
       if :: half[t] & 2 -> VIS(cb[t], ROW((t)%NP,cv[t]), 1)++; assert(VIS(cb[t], ROW((t)%NP,cv[t]), 1) < 2) /* (2) */ :: else fi;
#endif
#ifdef NOVERIFY
       if :: hang[t] & 2 -> VIS(hb[t], (t)%NP, 1)++; assert(VIS(hb[t], (t)%NP, 1) < 2) /* (2) */ :: else fi;
#endif
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

/* [Step.COMMIT, Step.ASK_TOPICS] one transaction of a decision: commit; if refused, read the witness.
 * LO: it was aborted; DB: what could not be learned. */
#ifdef NO_WITNESS
#define COMMITTED_(t,e) 0
#else
#define COMMITTED_(t,e) ((cmt[t] >> (e)) & 1)
#endif
#ifdef M_SHAREDKEY       /* of the other identity's transaction the witness tells too; an open one is waited for */
#define OTHER(t) (((t)+K*NP)%NT)
#define SEEN_COMMITTED(t,e) (COMMITTED_(t,e) || COMMITTED_(OTHER(t),e))
#define SEEN_OPEN(t,e) (ep[OTHER(t)] == e && st[OTHER(t)] == ONG)
#else
#define SEEN_COMMITTED(t,e) COMMITTED_(t,e)
#define SEEN_OPEN(t,e) false
#endif
#if OLD == 2             /* the old batch's records are past their retention time, no others */
#define GONE_(t,e) ((t) < NP && e == 1)
#else
#define GONE_(t,e) true
#endif
inline SETTLE_T(t,e,LO,DB) {
  COMMIT_T(t,e,r);
  if
  :: r == OKAY -> LO = 0
#if NWITNESS
  :: r == BAD && nwitness > 0 && GONE_(t,e) -> nwitness--; NOQUIET; printf("MSC: pid%d no answer from the witness of id%d epoch %d\n", _pid, t, e); DB = SILENT
  :: r == BAD && nwitness > 0 && GONE_(t,e) -> nwitness--; NOQUIET; printf("MSC: pid%d the witness of id%d epoch %d is unreadable\n", _pid, t, e);
#if defined(M_UNREADLOST)
       LO = 1
#elif defined(M_UNREADOK)
       LO = 0
#else
       if :: DB == 0 -> DB = DOUBT :: else fi
#endif
#endif
  :: r == BAD && SEEN_OPEN(t,e) -> DB = SILENT
  :: r == BAD && !(SEEN_OPEN(t,e)) -> LO = !(SEEN_COMMITTED(t,e))
  fi;
  r = 0 }
#ifdef M_NOSETTLE
inline SETTLE1(ID,p) { lost[p] = 0 }
#else
inline SETTLE1(ID,p) {
  atomic { LIVING(ID);
    if
    :: OPENED(be[p]) -> SETTLE_T(ID_(bs,p), be[p], lost[p], doubt)
    :: else -> lost[p] = 0
    fi } }
#endif
#if NP == 1
inline SETTLE(ID) { SETTLE1(ID,0) }
#else
inline SETTLE(ID) { SETTLE1(ID,0); SETTLE1(ID,1) }
#endif

#if NP == 1
#define COPY1(x,y) x[0] = y[0]
#define ZERO(x) x[0] = 0
#else
#define COPY1(x,y) x[0] = y[0]; x[1] = y[1]
#define ZERO(x) x[0] = 0; x[1] = 0
#endif

/* ---- the decision log [DecisionRegister] ---- */
inline READLOG() {
#if NSTALE
  if
  :: nstale > 0 -> nstale--; NOQUIET; printf("MSC: pid%d reads log, STALE: decision of batch %d, seq %d\n", _pid, ob-1, oseq);
     bb = ob; bseq = oseq; bs = os; bset = oset; COPY1(be,oe); COPY1(bv,ov);
#if NDELETE
     bx = ox
#endif
  :: true ->
#endif
  printf("MSC: pid%d reads log: decision of batch %d, seq %d\n", _pid, lb-1, lseq); bb = lb; bseq = lseq; bs = ls; bset = lset; COPY1(be,le); COPY1(bv,lv);
#if NDELETE
  bx = lx
#endif
#if NSTALE
  fi
#endif
}
#if INLINE
#define NO_ROWS ZERO(pi)
/* the rows of a partition become visible, or would */
inline SHOW(q) { if :: pi[q] ->
    if :: PARTS(pv[q]) & 1 -> VIS(pb-1, ROW(q,pv[q]), 0)++; assert(VIS(pb-1, ROW(q,pv[q]), 0) < 2) /* (2) */ :: else fi;
#if NH == 2
    if :: PARTS_D(pv[q]) & 2 -> VIS(pb-1, ROW(q,pv[q]), 1)++; assert(VIS(pb-1, ROW(q,pv[q]), 1) < 2) /* (2) */ :: else fi;
#endif
    printf("MSC: pid%d rows of batch %d partition %d are visible\n", _pid, pb-1, q) :: else fi }
#if NP == 1
#define SHOW_ROWS SHOW(0)
#else
#define SHOW_ROWS SHOW(0); SHOW(1)
#endif
#else
#define NO_ROWS skip
#define SHOW_ROWS skip
#endif
/* a new epoch of the driver's id: what is under way has an older one, and is refused */
#if NLATE
#define EPOCH(who) dep = who; late = 0
#define NOT_SENT prec = 0; pvoted = 0
#else
#define EPOCH(who) dep = who
#define NOT_SENT skip
#endif
inline DRV_CLR() { dong = 0; pb = 0; ps = 0; pseq = 0; pset = 0; ZERO(pe); ZERO(pv); NO_ROWS; NOT_SENT }
inline DRV_INIT() { printf("MSC: pid%d inits driver id\n", _pid); EPOCH(_pid); DRV_CLR(); myd = _pid }
#if NENDING
/* the end of the driver's transaction may wait for markers */
inline MAYWAIT(how) { if :: nending > 0 -> nending--; NOQUIET; printf("MSC: the driver's id waits for a marker (%d)\n", how); dend = how :: true fi }
/* InitProducerId: aborts, fences, and is answered when nothing is waited for */
inline INIT_ID(ID) {
  atomic { LIVING(ID); if :: dong -> EPOCH(0); DRV_CLR(); MAYWAIT(1) :: else fi }
  atomic { if :: !alive[ID] -> goto dead :: alive[ID] && dend == 0 -> DRV_INIT() fi } }
#else
#define MAYWAIT(how) skip
inline INIT_ID(ID) { atomic { LIVING(ID); DRV_INIT() } }
#endif
/* [open]: fence every other writer, then read */
inline OPEN(ID) {
#ifndef M_READFIRST
  INIT_ID(ID);
  atomic { LIVING(ID); READLOG(); hd = bseq+1 }
#else
  atomic { LIVING(ID); READLOG(); hd = bseq+1 }
  INIT_ID(ID)
#endif
}
/* [check_current]: the log is at the number that the plan was made from */
#ifdef NO_CAS
#define SAME(seq) true
#else
#define SAME(seq) (READ_ == seq)
#endif
#if NSTALE
#define READ_ got
#define READSEQ() if :: nstale > 0 -> nstale--; NOQUIET; printf("MSC: pid%d reads log, STALE: seq %d\n", _pid, oseq); got = oseq :: true -> got = lseq fi
#else
#define READ_ lseq
#define READSEQ() skip
#endif
inline COMPARE(ID,seq) {
  atomic { LIVING(ID); READSEQ();
    if
#if NREPLY + NLATE && !defined(NO_WRITER)
    :: w != 0 && lw == w && lseq == seq+1 && READ_ == lseq -> printf("MSC: pid%d reads its own record\n", _pid); ok = 1; fen = 4; hd = lseq+1
    :: else ->
#else
    :: true ->
#endif
       if
       :: SAME(seq) -> ok = 1; hd = READ_+1
       :: else -> printf("MSC: pid%d compares: seq %d, planned from %d\n", _pid, READ_, seq); ok = 0; hd = 0
       fi
    fi;
#if NSTALE
    got = 0;
#endif
#if NREPLY + NLATE
    w = 0
#endif
  } }
/* [_current, check_current]: what is held (hd-1) is the plan's record, or the log is opened and compared; also
 * if it was opened some seconds ago */
#ifdef M_HELD
#define HOLDS_PLANS(seq) (hd != 0)
#else
#define HOLDS_PLANS(seq) (hd == seq+1)
#endif
inline EXPECT(ID,seq) {
  if
  :: HOLDS_PLANS(seq) -> ok = (hd == seq+1)
  :: true ->
#ifndef M_READFIRST
     INIT_ID(ID);
     COMPARE(ID,seq)
#else
     COMPARE(ID,seq);
     INIT_ID(ID)
#endif
  fi }
/* [_append]: record and group offset, which is checked against the group's member; the vote; EndTxn.
 * If the record's offset is not the end that was read, a record of the query lies in between: the
 * transaction is aborted, and the log opened again. */
#if NSTALE && !defined(M_STALEEND)
#define AT_END (hd == lseq+1)
#else
#define AT_END true
#endif
#ifdef M_NOMEMBER
#define ACCEPTS(mm) true
#else
#define ACCEPTS(mm) (member == mm)
#endif
#if NP == 1
#define SET1(x,a,b) x[0] = a
#else
#define SET1(x,a,b) x[0] = a; x[1] = b
#endif
#if !INLINE || NLATE      /* NLATE: they have been sent before */
#define SET_ROWS(rows) skip
#elif NP == 1
#define SET_ROWS(rows) pi[0] = (rows && FRESH(0))
#else
#define SET_ROWS(rows) pi[0] = (rows && FRESH(0)); pi[1] = (rows && FRESH(1))
#endif
/* handed over by a task of this batch, not by one before */
#define FRESH(q) (cm_n[id*NP+(q)] && cm_e[id*NP+(q)] == INL)
#if NLATE
#define SENT(rows) prec = 1; pvoted = !(rows)
#define VOTED if :: p == NP && dep == myd -> pvoted = 1 :: else fi
/* [_abandon] its rows */
#define ABANDON if :: dep == myd && dong -> DRV_CLR() :: else fi
#else
#define SENT(rows) skip
#define VOTED skip
#define ABANDON skip
#endif
#if NLATE && INLINE      /* [send_rows] before the record */
inline SEND_ROWS1(ID,q,nb,w0) {
  atomic { LIVING(ID);
    if
    :: ok && FRESH(q) && dep == myd -> printf("MSC: pid%d sends rows of batch %d partition %d\n", _pid, nb-1, q); dong = 1; pb = nb; pv[q] = w0; pi[q] = 1
    :: ok && FRESH(q) && dep != myd -> ok = 0; hd = 0; fen++
    :: else
    fi } }
#if NP == 1
inline SEND_ROWS(ID,nb,w0,w1,rows) { if :: rows -> SEND_ROWS1(ID,0,nb,w0) :: else fi }
#else
inline SEND_ROWS(ID,nb,w0,w1,rows) { if :: rows -> SEND_ROWS1(ID,0,nb,w0); SEND_ROWS1(ID,1,nb,w1) :: else fi }
#endif
#endif
inline DRV_SEND(nb,ns,n0,n1,w0,w1,t,mm,rows) {
  if
  :: dep != myd -> printf("MSC: pid%d log write FENCED\n", _pid); ok = 0; hd = 0; fen++
  :: dep == myd && !(AT_END) -> printf("MSC: pid%d log write: records of the query before its own\n", _pid); ok = 0; hd = 0; fen++
  :: dep == myd && AT_END && ACCEPTS(mm) -> printf("MSC: pid%d sends record+offset of batch %d (open)\n", _pid, nb-1); dong = 1; pb = nb; ps = ns; pset = t; SET1(pe,n0,n1); SET1(pv,w0,w1); pseq = hd; SET_ROWS(rows); SENT(rows);
#ifdef M_ROWSFIRST
     SHOW_ROWS; NO_ROWS;
#endif
     skip
  :: dep == myd && AT_END && !(ACCEPTS(mm)) -> printf("MSC: pid%d log write REFUSED (member)\n", _pid); ABANDON; ok = 0; hd = 0; fen = 3
  fi }
/* EndTxn(commit) arrives: all that is in the open transaction becomes visible */
#if NLATE && INLINE == 2 && NP == 2   /* (2) a part of them is no batch */
#define WHOLE if :: pi[0] || pi[1] -> assert(VIS(pb-1,0,0) == VIS(pb-1,1,0)) :: else fi
#else
#define WHOLE skip
#endif
#if NLATE
#define HAS_RECORD prec
#else
#define HAS_RECORD true
#endif
inline DRV_COMMIT() {
     SHOW_ROWS; WHOLE;
     if
     :: HAS_RECORD ->
        printf("MSC: pid%d log record durable: batch %d seq %d epochs %d settled %d\n", _pid, pb-1, pseq, pe[0], pset);
#if NSTALE
        ob = lb; oseq = lseq; os = ls; oset = lset; COPY1(oe,le); COPY1(ov,lv);
#if NDELETE
        ox = lx;
#endif
#endif
#if NDELETE
        if :: lb != 0 && pb != 0 && STREAM(lb-1) != STREAM(pb-1) -> lx = 1 :: else fi;
#endif
        assert(lb == 0 || pb == lb || BOTH(PASSED));     /* (3) the log goes on from a visible decision only */
        lb = pb; ls = ps; lset = pset; COPY1(le,pe); COPY1(lv,pv); lseq = pseq;
#if NREPLY + NLATE
        lw = dep;
#endif
        skip
     :: else
     fi;
     DRV_CLR();
     MAYWAIT(2) }
/* [_let_go] an epoch is one transaction */
#ifdef M_ONEEPOCH
#define NOT_HELD hd = lseq+1
#else
#define NOT_HELD hd = 0
#endif
inline DRV_END() {
  if
#if NLATE
  :: dep == myd && dong && nlate > 0 -> printf("MSC: pid%d EndTxn has no answer, and is under way\n", _pid); nlate--; NOQUIET; late = 1; w = myd; ok = 0; hd = 0; fen++
#endif
  :: dep == myd && dong ->
     DRV_COMMIT(); NOT_HELD;
#if NLATE
     if :: nlate > 0 -> printf("MSC: pid%d a copy of its EndTxn is under way\n", _pid); nlate--; NOQUIET; late = 1 :: true fi;
#endif
#if NREPLY
     if :: nreply > 0 -> nreply--; printf("MSC: pid%d its answer is LOST\n", _pid); w = myd; ok = 0; hd = 0; fen++ :: true fi
#endif
     skip
  :: else -> printf("MSC: pid%d log write FENCED\n", _pid); ok = 0; hd = 0; fen++
  fi }
/* [write]: fenced, or no answer: open and compare once more, then send again; after the second
 * time the deadline has passed */
#ifdef M_NOVOTE
#define VOTERS 0
#else
#define VOTERS NP
#endif
/* [_vote] a prepared transaction is no longer open: the driver's own is aborted */
inline VOTE(ID) {
  if
  :: cm_n[ID*NP+p] && cm_e[ID*NP+p] != INL && !(ep[ID_(cm_s[ID],p)] == cm_e[ID*NP+p] && st[ID_(cm_s[ID],p)] == ONG) ->
       printf("MSC: pid%d the vote fails\n", _pid); if :: dep == myd && dong -> DRV_CLR(); MAYWAIT(1) :: else fi; ok = 0; hd = 0; fen = 3; p = 0
  :: else -> p++; VOTED
  fi }
inline REG_WRITE(ID,nb,ns,n0,n1,w0,w1,t,seq,mm,voters,rows) {
  fen = 0;
  do
  :: fen < 2 ->
#ifdef M_BLINDRETRY
     if :: fen == 0 -> EXPECT(ID,seq) :: else -> atomic { ok = 1; hd = seq+1; w = 0 } fi;
#else
     EXPECT(ID,seq);
#endif
     if :: !ok || fen == 4 -> break :: else fi;
#if NENDING
     atomic { if :: !alive[ID] -> goto dead :: alive[ID] && (dend == 0 || dep != myd) -> DRV_SEND(nb,ns,n0,n1,w0,w1,t,mm,rows) fi }
#elif NLATE && INLINE
     SEND_ROWS(ID,nb,w0,w1,rows);
     atomic { LIVING(ID); if :: ok -> DRV_SEND(nb,ns,n0,n1,w0,w1,t,mm,rows) :: else fi }
#else
     atomic { LIVING(ID); DRV_SEND(nb,ns,n0,n1,w0,w1,t,mm,rows) }
#endif
     do
     :: ok && p < voters -> atomic { LIVING(ID); VOTE(ID) }
     :: ok && p >= voters -> atomic { LIVING(ID); DRV_END(); if :: voters > 0 -> p = 0 :: else fi }; break
     :: !ok -> break
     od;
#ifdef NO_REOPEN
     break
#else
     if :: ok || fen == 3 -> break :: else fi
#endif
  :: else -> break
  od;
  fen = 0 }

/* ---- a task [TaskWriter]: init | produce + send offsets (HALF: ... | produce | send offsets;
        FEW: init | produce | produce | send offsets) ---- */
inline SENDOFF(t,e,mm) {
  if
  :: ep[t] != e -> ok = 0
#ifdef M_NOMEMBER_T
  :: else -> st[t] = ONG; off[t] = 1
#else
  :: ep[t] == e && member == mm -> st[t] = ONG; off[t] = 1
  :: ep[t] == e && member != mm -> ABORT_T(t,e); ok = 0    /* refused: aborts its own at once */
#endif
  fi }
inline PRODUCE(t,e,b,v,h) {
  if
#ifdef NOVERIFY          /* the second half goes to a partition that the task has added before */
  :: ep[t] == e && h == 2 && st[t] != ONG -> printf("MSC: pid%d produces to id%d epoch %d batch %d half %d, in NO transaction\n", _pid, t, e, b, h); hang[t] = 2; hb[t] = b
  :: ep[t] == e && (h != 2 || st[t] == ONG) ->
#else
  :: ep[t] == e ->
#endif
     printf("MSC: pid%d produces to id%d epoch %d batch %d half %d\n", _pid, t, e, b, h); st[t] = ONG; cb[t] = b; cv[t] = v; half[t] = half[t] | h   /* also from CA: a new transaction, same epoch */
  :: else -> ok = 0
  fi }
inline WRITE(ID,t,e,b,v,mm) {
  atomic { LIVING(ID); ok = 1; INITPID(t); e = ep[t] }
#ifdef HALF
#ifdef FEW
  atomic { LIVING(ID); PRODUCE(t,e,b,v,1) }
#else
  atomic { LIVING(ID); PRODUCE(t,e,b,v,1); if :: ok -> SENDOFF(t,e,mm) :: else fi }
#endif
  atomic { LIVING(ID); if :: ok -> PRODUCE(t,e,b,v,2) :: else fi }
#ifndef M_ONEOFFSET
  atomic { LIVING(ID); if :: ok -> SENDOFF(t,e,mm) :: else fi }
#endif
#else
  atomic { LIVING(ID); PRODUCE(t,e,b,v,PARTS(v)); if :: ok -> SENDOFF(t,e,mm) :: else fi }
#endif
}

/* ---- [Step.LIST, Step.FENCE, Step.ABORT] ---- */
inline LIST_() { i = 0;
    do :: i < NT -> if :: UND(i) -> sl[i] = ep[i] :: else -> sl[i] = 0 fi;
#if NHIDE
       if :: sl[i] != 0 && nhide > 0 -> nhide--; if :: rec -> NOQUIET :: else fi; printf("MSC: pid%d list misses id%d\n", _pid, i); sl[i] = 0 :: true fi;
#endif
       i++ :: else -> break od; i = 0;
#ifdef M_NOSWEEP
    UNLIST()
#endif
}
inline LIST(ID) { atomic { LIVING(ID); LIST_() } }
/* [Step.ABORT]: exactly what was listed, under the listed epoch */
inline SWEEP(ID) { i = 0;
#ifndef NO_SWEEP
    do :: i < NT && sl[i] == 0 -> i++
       :: i < NT && sl[i] != 0 -> atomic { LIVING(ID); ABORT_T(i,sl[i]); sl[i] = 0; i++ }
#else
    do :: i < NT -> atomic { LIVING(ID); if :: UND(i) -> ABORT_T(i,ep[i]) :: else fi; sl[i] = 0; i++ }
#endif
       :: i >= NT -> break od; i = 0 }
inline UNLIST() { i = 0; do :: i < NT -> sl[i] = 0; i++ :: else -> break od; i = 0 }
/* [Step.FENCE]: the latest record again, under the next number */
#ifdef NO_VOID
inline VOID(ID,T) { ok = 1 }
#elif NP == 1
inline VOID(ID,T) {
  printf("MSC: pid%d fences the plans\n", _pid);
  REG_WRITE(ID,bb,bs,be[0],0,bv[0],0,T,bseq,mem,0,0);
  if :: ok -> bseq++; bset = T :: else fi }
#else
inline VOID(ID,T) {
  printf("MSC: pid%d fences the plans\n", _pid);
  REG_WRITE(ID,bb,bs,be[0],be[1],bv[0],bv[1],T,bseq,mem,0,0);
  if :: ok -> bseq++; bset = T :: else fi }
#endif
/* [settled] in a plan's fence: this or an earlier settle has seen all of the decision committed */
#ifdef M_SETTLEDBLIND
#define ALL_SEEN (bb != 0)
#else
#define ALL_SEEN (bset || (bb != 0 && !(EITHER(LOST_)) && doubt == 0))
#endif
/* a new decision is not settled */
#ifdef M_SETTLEDKEPT
#define NEW_SET lset
#else
#define NEW_SET 0
#endif
#ifdef NO_SETTLEDBIT
#define SETTLED false
#else
#define SETTLED bset
#endif

/* [settle_without_id] what the log says is decided may be committed at any time */
#ifdef M_SETTLEWAITS
inline SETTLE_EARLY(ID) { skip }
#elif NENDING
inline SETTLE_EARLY(ID) {
  if
  :: !alive[ID] -> goto dead
  :: alive[ID] && dend != 0 ->
     atomic { LIVING(ID); READLOG() }
     if
     :: SETTLED -> skip
     :: else -> SETTLE(ID)
     fi;
     if :: doubt == SILENT -> goto forget :: else -> doubt = 0 fi
  :: alive[ID] && dend == 0 -> skip
  fi }
#endif
/* a step raises, and the process lives on */
#if NFAIL
#define MAYFAIL(L) if :: atomic { nfail > 0 -> nfail--; NOQUIET; printf("MSC: pid%d this step raises\n", _pid) }; goto L :: true fi
#else
#define MAYFAIL(L) skip
#endif
/* a task is gone after its last request, its transaction open, and the batch is given up */
#if NTDIE
#define TASKDIES if :: atomic { ok && ntdie > 0 -> ntdie--; NOQUIET; e[p] = 0; printf("MSC: run %d: a task dies with its transaction open\n", id) }; goto abort :: true fi
#else
#define TASKDIES skip
#endif

#if NP == 1
#define SAME_E (be[0] == pe_[0])
#else
#define SAME_E (be[0] == pe_[0] && be[1] == pe_[1])
#endif
#define SAME_DECISION (bb == pb_ && bs == ps_ && SAME_E)
/* Does a plan of a process that has planned before look for leftovers? Not if the one record since
   its last plan is a new decision. The seq alone does not prove it: a fence whose abort failed moves it. */
#ifdef M_SEQONLY
#define LOOK (bseq == pq)
#else
#define LOOK (bseq != pq+1 || SAME_DECISION)
#endif
/* [View.at]: is it known to be settled, and what was lost? */
#ifdef M_SETTLEDBATCH
#define KNOWN (pb_ != 0 && bb == pb_)
#else
#define KNOWN (pb_ != 0 && SAME_DECISION && !pd_)
#endif
/* an open transaction that this plan leaves to hold up readers: a lost partition's is ended when its
   task inits */
#define HOLDS(t) (st[t] == ONG && OWN(t) && !(bb == b+1 && SLOT(t) == bs && lost[(t)%NP]))
#define HELDUP (ANYT(HOLDS))
/* A late attempt that carries the plan's own member was accepted. A plan behind one new decision does
 * not list, so what such an attempt left open stays until its id is used again: a known limit, which
 * the row "closed: a late task attempt" of run.sh shows. */
#if NZTASK
#define LEFT_LATE (zmem == mem && !(LOOK))
#else
#define LEFT_LATE false
#endif

#ifdef AGAIN
#define STOPPED(x) (x == ERR || x == HUMAN)
#else
#define STOPPED(x) (x == ERR)
#endif
#if NP == 1
#define CM_CLR creq[id] = 0; cm_b[id] = 0; cm_mem[id] = 0; cm_seq[id] = 0; cm_s[id] = 0; cm_rep[id] = 0; cm_bad[id] = 0; \
  cm_e[id] = 0; cm_n[id] = 0; cm_v[id] = 0
#else
#define CM_CLR creq[id] = 0; cm_b[id] = 0; cm_mem[id] = 0; cm_seq[id] = 0; cm_s[id] = 0; cm_rep[id] = 0; cm_bad[id] = 0; \
  cm_e[id*2] = 0; cm_n[id*2] = 0; cm_v[id*2] = 0; cm_e[id*2+1] = 0; cm_n[id*2+1] = 0; cm_v[id*2+1] = 0
#endif
#define NO_PLANNER plm = 0; plq = 0; plb = 0; pls = 0; pld = 0; ZERO(ple); ZERO(pll)
/* the committer's request: was partition p written by this run? */
#if NP == 1
#define WRITTEN (cm_n[id])
#define CME1 0
#define CMV1 0
#else
#define WRITTEN (cm_n[id*NP] || cm_n[id*NP+1])
#define CME1 cm_e[id*NP+1]
#define CMV1 cm_v[id*NP+1]
#endif

/* [assignment] */
#define LOST_(p) lost[p]
#if defined(M_REWRITE)
#define THIS_BATCH false
#elif defined(M_NUMBER)
#define THIS_BATCH (bb != 0 && (bb-1) % NB == b % NB)
#else
#define THIS_BATCH (bb == b+1)
#endif
#ifdef M_NOOLDER
#define OLDER false
#else
#define OLDER (bb > b+1 && STREAM(bb-1) == STREAM(b))
#endif
/* a decision in doubt: a later batch of its stream proves that its commit() returned */
#if M_DOUBTANY == 1
#define DOUBT_SAME false
#else
#define DOUBT_SAME (doubt == DOUBT)
#endif
#if defined(M_DOUBTSTOPS)
#define DOUBT_OTHER (doubt == DOUBT)
#elif M_DOUBTANY == 2
#define DOUBT_OTHER false
#else
#define DOUBT_OTHER (doubt == DOUBT && STREAM(bb-1) != STREAM(b))
#endif
/* a stream that another one has followed takes no more batches */
#if !NDELETE || defined(M_NOEARLIER)
#define RETIRED false
#else
#define RETIRED (bx && STREAM(bb-1) != STREAM(b))
#endif
#ifdef M_LOSTGONE
#define LOST_GONE false
#else
#define LOST_GONE (bb != 0 && EITHER(LOST_))
#endif

proctype Run(byte id) {
  byte mem, jc, b, r, i, bb, bseq, bs, myd, hd, s, att, fen, p, doubt, pq, pb_, ps_;
  byte e[NP], be[NP], pe_[NP], sl[NT];
  bit bv[NP], bset, lost[NP], pl_[NP], pd_, n[NP];       /* n: written by this run */
  bit ok, v, rec, rep, hum;                   /* rep: a task has reported; rec: this planner has recovered */
#if NDELETE
  byte str; bit bx;
#define STR str
#else
#define STR 0
#endif
#if NREPLY + NLATE
  byte w;                      /* a record of this process whose outcome is unknown */
#endif
#if NSTALE
  byte got;
#endif
  started[id];
  if
  :: reuse[id] -> atomic { mem = plm; rec = (mem != 0); pq = plq; pb_ = plb; ps_ = pls; pd_ = pld; COPY1(pe_,ple); COPY1(pl_,pll);
#ifdef NO_PLANREAD
       bb = plb; bseq = plq; bs = pls; COPY1(be,ple); COPY1(bv,plv);
#endif
       skip }
  :: else
  fi;
  atomic { LIVING(id);
#if NDELETE
    str = rs[id];
#endif
    b = clog[STR];
    if :: b == END_OF(STR) -> res[id] = DONE; goto end :: b < END_OF(STR) && olog[STR] < b+1 -> olog[STR] = b+1 :: else fi }

plan: /* [Planner.plan] */
  doubt = 0;
  atomic { LIVING(id);
    if
    :: rec && member != mem ->
       if
#ifndef M_EXPIRED
       :: member == 0 -> rec = 0                      /* the session ended: recover */
#else
       :: member == 0 -> skip
#endif
#ifndef M_REJOIN
       :: member != 0 -> goto forget                  /* replaced: this run is over */
#else
       :: member != 0 -> rec = 0
#endif
       fi
    :: else
    fi }
  if
  :: rec ->
#ifndef NO_PLANREAD
     atomic { LIVING(id); READLOG() }
#endif
     if
     :: SETTLED -> ZERO(lost)
     :: !(SETTLED) && KNOWN -> COPY1(lost,pl_)
     :: else -> SETTLE(id)
     fi;
     if :: doubt == SILENT -> goto forget :: else fi;
#ifndef NO_REPLAN
     /* the plan before came to nothing, or the log has moved otherwise than by its decision: list, and
        only if there is something, fence and abort */
     if
     :: LOOK ->
        LIST(id);
        if
        :: LISTED ->
           MAYFAIL(forget);
           VOID(id,ALL_SEEN);
           if :: !ok -> goto forget :: else fi;
           MAYFAIL(forget);
           SWEEP(id)
        :: else
        fi
     :: else
     fi
#endif
  :: else -> /* [_recover] */
     /* the timeout is checked with an InitProducerId of the driver's id, before the group is joined */
#if NENDING
     SETTLE_EARLY(id);
#endif
     INIT_ID(id);
     atomic { LIVING(id); mem = 1+id+R*jc; jc++; member = mem; printf("MSC: run %d joins as member %d\n", id, mem);
       assert(jc <= 1+NSESSION) }                     /* (4) no run joins again when it is replaced: they would take turns */
     OPEN(id);
     if
     :: SETTLED -> ZERO(lost)
     :: else -> SETTLE(id)
     fi;
     if :: doubt == SILENT -> goto forget :: else fi;
#ifndef M_VOIDFIRST
     LIST(id);
     VOID(id,ALL_SEEN);
     if :: !ok -> goto forget :: else fi;
#else
     VOID(id,ALL_SEEN);
     if :: !ok -> goto forget :: else fi;
     LIST(id);
#endif
     SWEEP(id);
     /* [Step.WAIT]: answers when none of the query's transactions is pending */
#ifdef M_NOWAIT
     rec = 1;
#else
     do
     :: !alive[id] -> goto dead
     :: atomic { alive[id] && NOPENDING -> rec = 1 }; break
     :: atomic { alive[id] && member != mem -> goto forget }            /* replaced while waiting */
#ifndef NO_RELIST
     :: atomic { alive[id] && !NOPENDING && UNDECIDED -> LIST_() }       /* and list again */
        if
        :: LISTED ->
           VOID(id,ALL_SEEN);
           if :: !ok -> goto forget :: else fi;
           SWEEP(id)
        :: else
        fi
#endif
     od
#endif
  fi;
  atomic {
#ifdef QUIETCHK
    assert(!(alive[id] && quiet == id+1 && HELDUP && !(LEFT_LATE))); /* (4) no transaction is left that holds up readers */
#endif
    hd = 0; myd = 0; fen = 0; ok = 0;
    pq = bseq; pb_ = bb; ps_ = bs; pd_ = (doubt == DOUBT); COPY1(pe_,be); COPY1(pl_,lost);
#if defined(NONDET) || defined(GROW)
    if :: v = 0 :: v = 1 fi;
#endif
    ZERO(e); ZERO(n); rep = 0; att = 0; p = 0;
    /* [assignment] */
    if
    :: THIS_BATCH && !(DOUBT_SAME) -> s = bs
    :: THIS_BATCH && (DOUBT_SAME) -> hum = 1
    :: !(THIS_BATCH) && (RETIRED || OLDER || DOUBT_OTHER || LOST_GONE) -> hum = 1
    :: !(THIS_BATCH) && !(RETIRED || OLDER || DOUBT_OTHER || LOST_GONE) ->
#ifndef NO_SLOT
       s = (bb == 0 -> 0 : (bs+1)%K)
#else
       s = b%K
#endif
    fi;
    doubt = 0 }
  if :: hum -> goto abort :: else fi;

  /* the tasks, one after the other; each has two attempts */
  do
  :: p < NP ->
     if
     :: b == EMPTYB || (THIS_BATCH && !lost[p]) -> atomic { rep = 1; p++ }   /* count */
     :: else ->
#if NZTASK
        if
        :: atomic { nztask > 0 && z == 0 && p == 0 -> nztask--; z = 1; zt = ID_(s,0); zb = b; zmem = mem; zv = v; NOQUIET }
        :: true
        fi;
#endif
        if
#if INLINE
        :: atomic { LIVING(id); printf("MSC: run %d: task %d hands its rows over\n", id, p); e[p] = INL; ok = 1 }
#endif
#if INLINE != 2
        :: true -> WRITE(id,ID_(s,p),e[p],b,v,mem); TASKDIES
#endif
        fi;
        if
        :: ok -> n[p] = 1; rep = 1; att = 0; p++
        :: !ok && att == 0 -> att = 1
        :: else -> e[p] = 0; goto abort
        fi
     fi
  :: else -> break
  od;

  /* commit() runs in the committer process */
  atomic { LIVING(id); cm_b[id] = b; cm_mem[id] = mem; cm_seq[id] = pq; cm_s[id] = s; p = 0; ok = 0;
    cm_rep[id] = THIS_BATCH; cm_bad[id] = 0;
    do
    :: p < NP ->
       cm_n[id*NP+p] = n[p];
       if :: n[p] -> cm_e[id*NP+p] = e[p]; cm_v[id*NP+p] = v :: cm_rep[id] && !n[p] -> cm_e[id*NP+p] = be[p]; cm_v[id*NP+p] = bv[p] :: else -> cm_e[id*NP+p] = 0; cm_v[id*NP+p] = 0 fi;
       if
#if defined(GROW) && !defined(M_NOTALLY)
       :: cm_rep[id] && bv[p] != v -> cm_bad[id] = 1                          /* [compare] */
#endif
#if defined(NONDET) && !defined(M_NOFINGER)
       :: cm_rep[id] && (EITHER(LOST_)) && bv[p] != v -> cm_bad[id] = 1       /* [compare] */
#endif
       :: else
       fi;
       p++
    :: else -> break
    od;
    p = 0; creq[id] = 1 }
  if
  :: !alive[id] -> goto dead
  :: alive[id] && creq[id] == 2 -> skip
  :: atomic { alive[id] && creq[id] == 3 -> CM_CLR }; goto abort
  :: atomic { alive[id] && creq[id] == 4 -> CM_CLR; hum = 1 }; goto abort
  :: atomic { alive[id] && nabandon > 0 && creq[id] == 1 -> nabandon--; NOQUIET; printf("MSC: run %d: commit() interrupted, abort() called\n", id) }; goto abort   /* its message is lost; it may live on */
  fi;
  /* Spark's commit log, created exclusively */
  atomic { LIVING(id);
    if
    :: clog[STR] == b -> clog[STR] = b+1; printf("MSC: run %d commit log %d; visible %d\n", id, b, VIS(b,0,0));
       if :: b != EMPTYB -> assert(BOTH(SEEN)) /* (3) */ :: else fi;
       CM_CLR; b++
    :: else -> goto fail
    fi }
  if
  :: b == END_OF(STR) -> res[id] = DONE; goto end
  :: else -> atomic { LIVING(id); if :: olog[STR] == b -> olog[STR] = b+1 :: else -> goto fail fi }; goto plan
  fi;

abort: /* [Committer.abort], in a new process, or in the kept one, where it opens again */
#ifdef KEEP
  atomic { if :: creq[id] == 1 -> kgone[id] = 1 :: else fi }
#endif
#if NENDING
  SETTLE_EARLY(id);
#endif
  OPEN(id);
#ifndef M_ABORTBLIND
  if
  :: SETTLED -> skip
  :: else -> SETTLE(id)
  fi;
  /* a doubt is the next plan's matter, as lost partitions are */
  if :: doubt == SILENT -> goto fail :: else -> doubt = 0 fi;
  /* without any report the plan is unknown, and with it the member: the next plan cleans up */
  if :: !rep -> goto fail :: else fi;
#ifndef M_VOIDFIRST
  LIST(id);
  MAYFAIL(fail);
  VOID(id,bset);
#else
  VOID(id,bset);
  LIST(id);
#endif
#ifdef M_ABORTANYWAY
  ok = 1;
#endif
  if
  :: ok ->
     MAYFAIL(fail);
     p = 0;
     do
     :: p < NP -> if :: n[p] && !(bs == s && be[p] == e[p]) -> atomic { LIVING(id); ABORT_T(ID_(s,p),e[p]) } :: else fi; p++
     :: else -> break
     od;
     SWEEP(id)
  :: else
  fi;
#else
  p = 0;
  do
  :: p < NP -> if :: n[p] -> atomic { LIVING(id); ABORT_T(ID_(s,p),e[p]) } :: else fi; p++
  :: else -> break
  od;
#endif
  goto fail;

forget: /* the next plan recovers from what was half done */
  rec = 0; hd = 0;
fail:
#ifdef KEEP
  atomic { kh[id] = hd; kd[id] = (hd != 0 -> myd : 0) }
#endif
  printf("MSC: run %d stops with an error (operator needed: %d)\n", id, hum);
  atomic {
    if
    :: res[id] == RUNNING && hum && clog[STR] == b -> res[id] = HUMAN
    :: res[id] == RUNNING && !(hum && clog[STR] == b) -> res[id] = ERR     /* a stale run fails, too */
    :: else
    fi;
#ifdef QUIETCHK
    assert(!(res[id] == ERR && quiet == id+1))         /* (4) no livelock */
#endif
  }
end:
  if :: !alive[id] -> goto dead :: else fi;
#ifdef NOHUMAN
  assert(res[id] != HUMAN);
#endif
  atomic {
    if
    :: last != id -> skip                              /* the planner of an older JVM */
    :: last == id && rec -> plm = mem; plq = pq; plb = pb_; pls = ps_; pld = pd_; COPY1(ple,pe_); COPY1(pll,pl_);
#ifdef NO_PLANREAD
       COPY1(plv,bv)
#endif
    :: last == id && !rec -> NO_PLANNER
    fi }
dead:
  atomic {
    gone[id] = 1;
    UNLIST();
    b = 0; r = 0; bb = 0; bseq = 0; bs = 0; myd = 0; hd = 0; s = 0; att = 0; p = 0; doubt = 0; pq = 0; pb_ = 0; ps_ = 0;
    ZERO(e); ZERO(be); ZERO(pe_); ZERO(bv); ZERO(lost); ZERO(pl_); ZERO(n);
    ok = 0; v = 0; rec = 0; rep = 0; mem = 0; fen = 0; hum = 0; jc = 0; bset = 0; pd_ = 0;
#if NDELETE
    bx = 0; str = 0;
#endif
    skip }
}

/* commit() of run id [Committer.commit]; may outlive the run's interest in it */
proctype Committer(byte id) {
  byte myd, hd, r, fen, doubt, p; bit ok, lo;
#if NREPLY + NLATE
  byte w;
#endif
#if NSTALE
  byte got;
#endif
end_idle:
  do
  :: !alive[id] -> goto dead
  :: alive[id] && creq[id] == 1 -> ok = 1;
#ifdef KEEP
     atomic { if :: !kgone[id] -> hd = kh[id]; myd = kd[id] :: else fi }
#endif
     if
     :: cm_rep[id] -> /* [_compare] */
        atomic { LIVING(id); READSEQ(); if :: !(SAME(cm_seq[id])) -> ok = 0 :: else -> if :: cm_bad[id] -> doubt = DOUBT; ok = 0 :: else fi fi;
#if NSTALE
          got = 0
#endif
        }
     :: else
     fi;
     if
     :: ok && WRITTEN -> /* [_decide] */
        REG_WRITE(id,cm_b[id]+1,cm_s[id],cm_e[id*NP],CME1,cm_v[id*NP],CMV1,NEW_SET,cm_seq[id],cm_mem[id],VOTERS,1);
        if
        :: ok ->
           do /* [Step.COMMIT] */
           :: p < NP && OPENED(cm_e[id*NP+p]) -> atomic { LIVING(id); SETTLE_T(ID_(cm_s[id],p), cm_e[id*NP+p], lo, doubt); if :: lo -> ok = 0 :: else fi; lo = 0; p++ }
           :: p < NP && !(OPENED(cm_e[id*NP+p])) -> p++
           :: else -> break
           od;
           p = 0
        :: else
        fi
     :: else
     fi;
     atomic {
#ifdef KEEP
       if :: !kgone[id] -> kh[id] = hd; kd[id] = (hd != 0 -> myd : 0) :: else fi;
#endif
       creq[id] = (doubt == DOUBT -> 4 : (ok && doubt == 0 -> 2 : 3)); fen = 0; hd = 0; myd = 0;
#if defined(KEEP) && !defined(M_ONEEPOCH)
       if :: ok && doubt == 0 -> doubt = 0; ok = 0 :: else -> doubt = 0; ok = 0; goto end_idle fi }
     /* [Opening] in the background; the next commit() waits for it */
     INIT_ID(id);
     atomic { LIVING(id); READSEQ(); if :: !kgone[id] -> kh[id] = READ_+1; kd[id] = myd :: else fi; myd = 0;
#if NSTALE
       got = 0;
#endif
       skip }
#else
       ok = 0; doubt = 0 }
#endif
  od;
dead:
  atomic { cgone[id] = 1; r = 0; ok = 0; lo = 0; p = 0; doubt = 0; fen = 0; hd = 0; myd = 0; CM_CLR }
}

#if NZTASK
/* a late attempt of a task: does its steps whenever it likes */
proctype ZTask() {
  byte e; bit ok;
end_z:
  z == 1;
  WRITE(R,zt,e,zb,zv,zmem);
dead:
  atomic { e = 0; ok = 0; zt = 0; zb = 0; zv = 0;      /* zmem stays for LEFT_LATE */
    if :: nztask > 0 -> z = 0; goto end_z :: else -> z = 2 fi }
}
#endif

/* a run may wait for the driver's id, but no decided rows with it */
#ifdef FOREVER
#define DECIDED_OPEN(t) (st[t] == ONG && DECIDED(t,ep[t]))
#define WAITS_FOREVER || (dend != 0 && !(ANYT(DECIDED_OPEN)))
#else
#define WAITS_FOREVER
#endif

#ifdef LIVE
/* a step is always possible, so that being stuck is an endless run too */
proctype Clock() { bit tick; do :: timeout -> tick = 1-tick od }
#endif

#if NTIMEOUT + NSESSION + NFORGET + NENDING + NLATE
#define DONE_(t) (st[t] == CC || st[t] == CA)
/* its producer id goes with it, so that what is left of the producer is refused */
inline FORGET_(t) { nforget--; printf("MSC: the coordinator forgets id%d\n", t); st[t] = EMPTY; ep[t]++ }
inline TIMEOUT_(t) { ntimeout--; printf("MSC: timeout\n"); INITPID(t); NOQUIET }
proctype Fault() {
end_f:
  do
  :: atomic { ntimeout > 0 TGUARD(0) && st[0] == ONG -> TIMEOUT_(0) }
#if NT > 1
  :: atomic { ntimeout > 0 TGUARD(1) && st[1] == ONG -> TIMEOUT_(1) }
#endif
#if NT > 2
  :: atomic { ntimeout > 0 TGUARD(2) && st[2] == ONG -> TIMEOUT_(2) }
  :: atomic { ntimeout > 0 TGUARD(3) && st[3] == ONG -> TIMEOUT_(3) }
#endif
#if NFORGET
  :: atomic { nforget > 0 && DONE_(0) -> FORGET_(0) }
#if NT > 1
  :: atomic { nforget > 0 && DONE_(1) -> FORGET_(1) }
#endif
#if NT > 2
  :: atomic { nforget > 0 && DONE_(2) -> FORGET_(2) }
  :: atomic { nforget > 0 && DONE_(3) -> FORGET_(3) }
#endif
#endif
  :: atomic { ntimeout > 0 && dong -> ntimeout--; EPOCH(0); DRV_CLR(); NOQUIET; MAYWAIT(1) }
#if NENDING && !defined(FOREVER)
  :: atomic { dend != 0 -> printf("MSC: the marker is written\n"); dend = 0 }
#endif
#if NLATE
  :: atomic { late -> printf("MSC: an EndTxn(commit) arrives late\n"); late = 0; NOQUIET; if :: dong -> A1(pvoted); DRV_COMMIT() :: else fi }
#endif
  :: atomic { nsession > 0 && member != 0 -> nsession--; printf("MSC: session ends: group empty\n"); member = 0; NOQUIET }
  od
}
#endif

/* a batch of stream 0 is decided, in slot 0, and Spark has not noted it yet */
#ifdef NO_WITNESS
#define WITNESS_OLD skip
#else
#define WITNESS_OLD cmt[i] = 2
#endif
inline START_OLD() {
  lb = 1; lseq = 1; ls = 0; olog[0] = 1; i = 0;
#if OLD == 2
  if :: clog[0] = 1 :: lset = 1 fi;
#endif
  do
  :: i < NP -> le[i] = 1; ep[i] = 1;
#if OLD == 2
     ep[i] = 2; VIS(0,i,0) = 1; WITNESS_OLD;
#else
     if
     :: st[i] = CC; VIS(0,i,0) = 1; WITNESS_OLD
     :: st[i] = CA; ep[i] = 2; VIS(0,i,0) = 1; WITNESS_OLD     /* a late attempt has taken the id since */
     :: st[i] = ONG; half[i] = 1; off[i] = 1
     :: st[i] = CA
     fi;
#endif
     i++
  :: else -> break
  od }

init {
  byte i;
  atomic {
    i = 0;
#if NDELETE
    clog[1] = NB; olog[1] = NB;
#endif
#ifdef OLD
    START_OLD();
#if NDELETE
    if :: ndelete--; cur = 1 :: true fi; rs[0] = cur;
#endif
#endif
#ifdef M_SHAREDKEY       /* its producer ids are others, so no epoch of theirs is equal */
    i = K*NP; do :: i < NT -> ep[i] = 7; i++ :: else -> break od;
#endif
    i = 0;
    do :: i < R -> alive[i] = 1; run Run(i); run Committer(i); i++ :: else -> break od;
#if NZTASK
    run ZTask();
#endif
#if NTIMEOUT + NSESSION + NFORGET + NENDING + NLATE
    run Fault();
#endif
#ifdef LIVE
    run Clock();
#endif
    alive[R] = 1; i = 1; started[0] = 1; quiet = 1 }
  /* a new run at any moment: the older one has stopped, or is dead, or lives on as a zombie */
  do
  :: atomic { i < R && clog[cur] < END_OF(cur) ->
       if
       :: res[i-1] == RUNNING -> alive[i-1] = 0; (gone[i-1] && cgone[i-1]); NO_PLANNER      /* crashed */
       :: res[i-1] == RUNNING -> NO_PLANNER                      /* zombie */
#ifndef M_SHAREDKEY
       :: STOPPED(res[i-1]) && plm != 0 -> reuse[i] = 1          /* same driver JVM, planner process kept */
#endif
       :: STOPPED(res[i-1]) -> NO_PLANNER                        /* a fresh planner process */
       fi;
#if NDELETE
       if :: ndelete > 0 -> ndelete--; cur = 1-cur :: true fi; rs[i] = cur;
#endif
#if NRESTORE
       if :: nrestore > 0 && clog[cur] > 0 -> nrestore--; clog[cur]--; olog[cur] = clog[cur]+1 :: true fi;
#endif
#ifdef KEEP
       if :: reuse[i] && creq[i-1] != 1 && !kgone[i-1] -> kh[i] = kh[i-1]; kd[i] = kd[i-1] :: else fi;
#endif
       if :: (z != 1) && (res[i-1] != RUNNING || !alive[i-1]) && creq[i-1] != 1 && (i < 2 || ((res[0] != RUNNING || !alive[0]) && creq[0] != 1)) -> quiet = i+1 :: else -> quiet = 0 fi;
       started[i] = 1; last = i; printf("MSC: run %d starts; run %d res %d alive %d reuse %d\n", i, i-1, res[i-1], alive[i-1], reuse[i]); i++ }
  :: clog[cur] == END_OF(cur) -> break
  :: i == R -> break
  od;
  fin = 1;
#ifndef LIVE
  /* nothing can move: the last run must have ended */
  timeout -> assert(i == 0 || res[i-1] != RUNNING WAITS_FOREVER)
#endif
}

#ifdef LIVE
/* no more runs will start, and the last one has ended: done, or with an error that says why */
#define ENDED (fin && res[last] != RUNNING)
#define CLOSED (ENDED && (res[last] != DONE || !(ANYT(ONG_))))
ltl ends { <>[] ENDED }
ltl closed { <>[] CLOSED }
#endif
