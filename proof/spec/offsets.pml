/* offsets.pml -- the source's offsets in the decision (eos.source.group.id) as a model for Spin.
 *
 * eos.pml has the two phases, the fencing and the compare. Here a decision is one step that only the
 * run that planned last can make; what is modelled is where a stream begins, what the record, the group
 * and Spark's checkpoint say about it, and each way to lose, damage or replace one of them.
 * One atomic step = one record, one file of the checkpoint, or one read of it.
 *
 * Size and world (-D):
 *   R runs of the query; NP partitions of the source (1 or 2) with K rows each
 *   TOPICS     the second partition is another topic, and each run may subscribe to it or not; without
 *              it, it is a partition that appears when the query runs already
 *   FILTER     the query drops row 1: a batch may be without rows
 *   STATEFUL   each row waits in state until the next one is read
 *   ANYSTART   the program may begin anywhere, instead of where [starting_offsets] says
 *   GROUPED    another program has written row 0 and committed to the group
 *   OWNSINK    Spark's own sink has written row 0, and maybe row 1, which its checkpoint does not say
 * Fault budgets (-D, default 0); a driver may crash at any step:
 *   NDELETE    the checkpoint is deleted
 *   NRESTORE   a copy of the checkpoint, made at any time before, is put back
 *   NHALF      a part of the checkpoint is deleted: metadata, offsets, sources, commits
 *   NEXPIRE    decided transactions are aborted, in whole or in part
 *   NFOREIGN   the group's offsets are reset, or expire
 *   NZOMBIE    a driver lives on while the next one starts
 *   NOFF       a run has the option switched off
 *   NRULE      an operator's command: offsets --use record|group, resolve
 * What is asserted, with the numbers of eos.pml, unless an operator or a run without the option has accepted otherwise:
 *   (2) no row is visible twice
 *   (3) at the end of the source each row is visible once
 *   (4) a stop has a reason: begun elsewhere, a damaged checkpoint, an unsettled reset, ...; a run alone
 *       with a whole or an empty checkpoint ends without an error
 *   (5) after a batch the record's end and the group's offsets are those of the batch
 *   (6) a reset of the group is not overwritten by a new stream
 *   REACH      is the opposite: a run gets to the end of the source, all faults behind it
 * Mutations (-D), one rule taken back each: see run.sh and README.md.
 */
#ifndef R
#define R 2
#endif
#ifndef NP
#define NP 1
#endif
#ifndef K
#define K 3
#endif
#ifndef NDELETE
#define NDELETE 0
#endif
#ifndef NRESTORE
#define NRESTORE 0
#endif
#ifndef NHALF
#define NHALF 0
#endif
#ifndef NEXPIRE
#define NEXPIRE 0
#endif
#ifndef NFOREIGN
#define NFOREIGN 0
#endif
#ifndef NZOMBIE
#define NZOMBIE 0
#endif
#ifndef NOFF
#define NOFF 0
#endif
#ifndef NRULE
#define NRULE 0
#endif

#define NS (R+2)         /* streams: each run may be a new one, and one of another sink */
#define NONE 15          /* no offset of this partition */
#ifdef FILTER
#define FILTERED(q,r) ((q) == 0 && (r) == 1)
#else
#define FILTERED(q,r) false
#endif
#if NP == 1
#define ALL(F) (F(0))
#define ANY(F) (F(0))
#define SET(x,y) x[0] = y[0]
#define FILL(x,v) x[0] = v
#else
#define ALL(F) (F(0) && F(1))
#define ANY(F) (F(0) || F(1))
#define SET(x,y) x[0] = y[0]; x[1] = y[1]
#define FILL(x,v) x[0] = v; x[1] = v
#endif

/* results of a run: ERR Spark may be started again; HUMAN OperatorNeededError */
#define RUNNING 0
#define DONE 1
#define ERR 2
#define HUMAN 3
/* a row's transaction in the latest decision */
#define OPEN 1
#define LOST 2

/* ---- what a read_committed reader sees; a row that the query drops counts as seen when read ---- */
byte vis[NP*K];
byte base[NP];           /* where the query began in a topic: the first decision with it */
/* ---- the latest record ---- */
byte owner;              /* 1+run that planned from it; 0: a command wrote it */
bit  recorded, any;      /* there is a record; the query has decided */
byte ds, db, dx[NP], dy[NP], tx[NP*K];  /* decision: stream (0: none), batch, its rows, their transactions */
byte ex[NS];             /* [other_streams] last decided batch+1 of each stream */
bit  pos, stale, state;  /* [source] there is a position; [stale]; [stateful] */
byte qs, qb, ps[NP], pe[NP];            /* [batch], [start], [end] */
/* ---- the group's copy ---- */
byte grp[NP];
/* ---- Spark's checkpoint ---- */
typedef Dir {
  byte m;                /* metadata: the stream id (0: no file) */
  byte n, e1[NP];        /* latest file of offsets/ is n-1 (0: none) */
  bit h0; byte e0[NP];   /* the file before it, if it is there */
  byte c;                /* latest file of commits/ is c-1 */
  bit hs; byte src[NP]   /* sources/0/0 */
};
Dir cp, copy;
bit copied, there;       /* the partition that appears later is there */
byte streams;
/* ---- runs ---- */
byte res[R]; bit alive[R];
byte quiet;              /* 1+run: no other process and no fault since it began */
byte zombies = NZOMBIE, ndelete = NDELETE, nrestore = NRESTORE, nhalf = NHALF, nexpire = NEXPIRE,
     nforeign = NFOREIGN, noff = NOFF, nrule = NRULE;
/* ---- what has happened, for the assertions only ---- */
bit  accepted, damaged, foreign, off, resub, based[NP];
byte i_, j_; bit lostany, lostall, same, exact;   /* scratch of one step */

#define NOQUIET quiet = 0
#define CLEAN lostany = 0; lostall = 0; same = 0; exact = 0
#define LIVING if :: alive[id] :: else -> goto dead fi
#define ROWS_(F) i_ = 0; do :: i_ < NP -> j_ = 0; do :: j_ < K -> F; j_++ :: else -> break od; i_++ :: else -> break od; i_ = 0; j_ = 0
#define X_ (i_*K+j_)

inline SHOW() { if :: FILTERED(i_,j_) -> vis[X_] = 1 :: else -> if :: vis[X_] < 2 -> vis[X_]++ :: else fi; assert(accepted || vis[X_] < 2) /* (2) */ fi }
/* settle: an aborted transaction is lost */
inline SETTLE1() { if :: tx[X_] == OPEN -> tx[X_] = 0; SHOW() :: else fi }
inline SETTLE() { ROWS_(SETTLE1()); LOOK() }
inline LOOK1() { if :: dx[i_] <= j_ && j_ < dy[i_] && !(FILTERED(i_,j_)) -> if :: tx[X_] == LOST -> lostany = 1 :: else -> lostall = 0 fi :: else fi }
inline LOOK() { lostany = 0; lostall = 1; if :: ds != 0 -> ROWS_(LOOK1()) :: else fi; lostall = lostany && lostall }
inline CLEAR1() { tx[X_] = 0 }
inline FORGET() { ROWS_(CLEAR1()); FILL(dx,0); FILL(dy,0); ds = 0; db = 0; lostany = 0; lostall = 0 }

/* the run reads this partition */
#ifdef TOPICS
#define SUB(q) ((q) == 0 || sub)
#define KNOWN_TOPIC(q) ((q) == 0)
#else
#define SUB(q) ((q) == 0 || there)
#define KNOWN_TOPIC(q) ((q) == 0 || pos)
#endif
/* the position: of a batch that is lost as a whole its start */
#ifdef M_ENDALWAYS
#define BACK false
#else
#define BACK (lostall && ds == qs && db == qb)
#endif
/* [moved back] a partition that came with the lost batch begins where its log does */
#ifdef M_STARTLACKS
#define START_(q) ps[q]
#else
#define START_(q) (ps[q] == NONE && pe[q] != NONE -> 0 : ps[q])
#endif
#define POS(q) (BACK -> START_(q) : pe[q])
#define GROUP_DIFFERS_(q) (pe[q] != NONE && SUB(q) && grp[q] != pe[q])
#define GROUP_DIFFERS (ANY(GROUP_DIFFERS_))
/* damaged, or two drivers have used it at once */
#define DAMAGED (damaged || zombies != NZOMBIE)
/* a partition that is new to the stream is read from its begin */
#define BEGIN(q) (cs[q] == NONE -> 0 : cs[q])
/* every row before the start is visible, or was left out by choice, and none after it */
inline EXACT1() {
  if
  :: ce[i_] != NONE && BEGIN(i_) < base[i_] -> exact = 0
  :: ce[i_] != NONE && j_ < BEGIN(i_) && j_ >= base[i_] && vis[X_] == 0 -> exact = 0
  :: ce[i_] != NONE && j_ >= BEGIN(i_) && vis[X_] != 0 -> exact = 0
  :: else
  fi }
/* a stop, and the reason that must be there */
#define STOP(why) assert(accepted || (why)) /* (4) */; goto human
#if defined(ANYSTART) || defined(GROUPED)
#define SHOULD_GO_ON false
#else
#define SHOULD_GO_ON (fresh && quiet == id+1)
#endif
#define STOP_UNLESS_EXACT exact = 1; ROWS_(EXACT1()); STOP(!exact && !(SHOULD_GO_ON))

/* ---- a batch: its rows, those of a stateful query one behind ---- */
#ifdef STATEFUL
#define LO(q) (b == 0 -> s[q] : s[q]-1)
#define HI(q) (e[q]-1)
#define LAST (K-1)
#else
#define LO(q) (s[q] == NONE -> 0 : s[q])
#define HI(q) e[q]
#define LAST K
#endif
#define IN_BATCH (e[i_] != NONE && LO(i_) <= j_ && j_ < HI(i_))
#define DECIDED (dx[i_] <= j_ && j_ < dy[i_])
inline SAME1() { if :: !(FILTERED(i_,j_)) && IN_BATCH != DECIDED -> same = 0 :: else fi }
inline SEEN1() { if :: !(FILTERED(i_,j_)) && IN_BATCH && vis[X_] == 0 -> same = 0 :: else fi }
inline HAS1() { if :: IN_BATCH && !(FILTERED(i_,j_)) -> same = 1 :: else fi }
/* a row is in the transaction of the decision, or in one that is settled later */
inline WRITE1() { if :: FILTERED(i_,j_) -> SHOW() :: else -> if :: SHOW() :: tx[X_] = OPEN fi fi }
inline REWRITE1() { if :: tx[X_] == LOST -> tx[X_] = 0; WRITE1() :: else fi }
inline DECIDE1() { if :: IN_BATCH -> WRITE1() :: else fi }

/* a replay of the decided batch: the same rows, and the same end */
#ifdef M_REPLAYEND
#define OTHER_END(q) false
#else
#define OTHER_END(q) (ce[q] != NONE && ce[q] != pe[q])
#endif
inline REPLAY() {
  same = 1; ROWS_(SAME1());
  if :: !same -> STOP(DAMAGED) :: else fi;
  if :: opt && pos && qs == m && qb == b && ANY(OTHER_END) -> STOP(DAMAGED) :: else fi;
  ROWS_(REWRITE1()) }

/* the rules for the next batch of a stream */
#define READABLE (cs[0] != NONE)
#ifdef M_READDED
#define READDED_(q) false
#else
#define READDED_(q) (ce[q] != NONE && cs[q] == NONE && pe[q] != NONE && pe[q] != 0)
#endif
/* without the option a batch without rows is not decided: numbers that were left out tell that it was
   switched off, and the stream may have gone on since */
#ifdef M_GAP
#define SKIPPED false
#else
#define SKIPPED (b > db+1)
#endif
#define MOVED_(q) (cs[q] != NONE && (cs[q] < pe[q] || (cs[q] > pe[q] && !(SKIPPED))))
inline GO_ON() {
  if :: lostany -> STOP(DAMAGED) :: else fi;
#ifdef M_TRUSTEND
  if :: pos && !stale && b == db+1 -> SET(cs,pe) :: else fi;
#endif
  if :: !(READABLE) -> STOP(DAMAGED) :: else fi;
  if :: pos && !stale && ANY(MOVED_) -> STOP(DAMAGED) :: else fi;
  if :: pos && !stale && ANY(READDED_) -> STOP(resub) :: else fi }

#ifdef M_EARLIER
#define EARLIER_(q) false
#else
#define EARLIER_(q) (ce[q] != NONE && pe[q] != NONE && BEGIN(q) < pe[q])
#endif
#ifdef M_LATER
#define LATER_(q) false
#else
#define LATER_(q) (ce[q] != NONE && pe[q] != NONE && BEGIN(q) > pe[q])
#endif
#ifdef M_NEWPARTITION
#define BEHIND_(q) false
#else
#define BEHIND_(q) (ce[q] != NONE && pe[q] == NONE && KNOWN_TOPIC(q) && BEGIN(q) > 0)
#endif
#ifdef M_GROUPFIRST
#define GROUP_AHEAD_(q) false
#else
#define GROUP_AHEAD_(q) (ce[q] != NONE && grp[q] != NONE && grp[q] != BEGIN(q))
#endif
inline HAND_OVER() {
  if
  :: pos ->
     if :: stale -> STOP(off) :: else fi;
#ifndef M_STATEFUL
     if :: state -> STOP(true) :: else fi;
#endif
#ifndef M_GROUP
     if :: GROUP_DIFFERS -> STOP(foreign) :: else fi;
#endif
#ifndef M_PARTLY
     if :: lostany -> STOP(!lostall || stale || qs != ds) :: else fi;
#endif
#ifndef M_UNREADABLE
     if :: !(READABLE) -> STOP(DAMAGED) :: else fi;
#endif
     if :: (READABLE) && (ANY(EARLIER_) || ANY(LATER_) || ANY(BEHIND_)) -> STOP_UNLESS_EXACT :: else fi
#ifndef M_NOPOSITION
  :: !pos && any -> STOP(off)
#endif
  :: else ->
     if :: lostany -> STOP(off) :: else fi;
     if :: !(READABLE) -> STOP(DAMAGED) :: else fi;
     if :: ANY(GROUP_AHEAD_) -> STOP_UNLESS_EXACT :: else fi
  fi }

/* record, rows and group in one transaction */
#ifdef M_NOCARRY
#define CARRIED NONE
#else
#define CARRIED pe[p]
#endif
inline MOVE_GROUP() {
  p = 0;
  do
  :: p < NP -> if :: pe[p] != NONE && ce[p] != NONE -> grp[p] = pe[p] :: else fi; p++
  :: else -> break
  od;
  p = 0 }
/* of a topic that the query reads: none of its rows is left out by choice */
#ifdef TOPICS
#define NEW_PARTITION(q) false
#else
#define NEW_PARTITION(q) (any && (q) == 1)
#endif
inline DECIDE() {
  same = opt; ROWS_(HAS1());
  if
  :: same ->                                  /* without rows only with the option */
     if
     :: opt ->
        assert(accepted || !foreign || ds == m) /* (6) */;
        foreign = 0;
        p = 0;
        do
        :: p < NP ->
           ps[p] = (ce[p] == NONE -> pe[p] : cs[p]);
           p++
        :: else -> break
        od;
        p = 0;
        do
        :: p < NP -> if :: ce[p] != NONE -> pe[p] = ce[p] :: else -> pe[p] = CARRIED fi; p++
        :: else -> break
        od;
        p = 0; pos = 1; stale = 0; qs = m; qb = b;
#ifdef STATEFUL
        state = 1;
#endif
#ifndef M_GROUPAPART
        MOVE_GROUP()
#endif
     :: else ->
#ifndef NO_STALE
        stale = pos
#endif
     fi;
     FORGET();
     p = 0;
     do
     :: p < NP ->
        if :: e[p] != NONE -> dx[p] = LO(p); dy[p] = HI(p); if :: !based[p] -> based[p] = 1; base[p] = (NEW_PARTITION(p) -> 0 : LO(p)) :: else fi :: else fi;
        p++
     :: else -> break
     od;
     p = 0;
     ds = m; db = b; ex[m] = b+1; any = 1;
     printf("MSC: run %d decides batch %d of stream %d: rows %d to %d; position %d to %d\n", id, b, m, dx[0], dy[0], ps[0], pe[0]);
     ROWS_(DECIDE1())
  :: else
  fi }
#ifdef M_DROPBLIND
#define DROP_DIFFERS false
#define DROP_MOVES_(q) true
#else
#define DROP_DIFFERS GROUP_DIFFERS
#define DROP_MOVES_(q) (grp[q] == pe[q])
#endif
/* [drop] nothing of the decision is visible: its batch is read again by another stream */
inline DROP() {
  ex[ds] = db; FORGET();
  p = 0;
  do
  :: p < NP -> if :: pe[p] != NONE && DROP_MOVES_(p) -> grp[p] = START_(p) :: else fi; pe[p] = START_(p); p++
  :: else -> break
  od;
  p = 0; qs = 0; printf("MSC: run %d drops the decision; position %d\n", id, pe[0]) }
inline COMPLETE1() { if :: tx[X_] == LOST -> SHOW() :: else fi }
/* every partition is read to its end */
#define AT_END_(q) (!(SUB(q)) || s[q] == K)
/* the batch that comes first was constructed before, maybe for another sink */
#ifdef M_AHEAD
#define AHEAD_ false
#else
#define AHEAD_ (opt && !recorded && early)
#endif
#if R == 1
#define ALONE true
#elif R == 2
#define ALONE !alive[0]
#elif R == 3
#define ALONE (!alive[0] && !alive[1])
#else
#define ALONE (!alive[0] && !alive[1] && !alive[2])
#endif
inline FINAL1() { assert(accepted || !(SUB(i_)) || j_ < base[i_] || j_ >= LAST || FILTERED(i_,j_) || vis[X_] == 1) /* (3) */ }

inline DELETE(d) { d.m = 0; d.n = 0; FILL(d.e1,NONE); d.h0 = 0; FILL(d.e0,NONE); d.c = 0; d.hs = 0; FILL(d.src,NONE) }
inline MOVE(d,f) { d.m = f.m; d.n = f.n; SET(d.e1,f.e1); d.h0 = f.h0; SET(d.e0,f.e0); d.c = f.c; d.hs = f.hs; SET(d.src,f.src) }

proctype Run(byte id; bit opt; bit sub) {
  byte m, b, p; byte s[NP], e[NP], st[NP], cs[NP], ce[NP]; bit con, planned, known, fresh, early, rep, got;

  /* the program: starting_offsets() settles, and refuses what the rules refuse */
  atomic { LIVING;
    FILL(cs,NONE); FILL(ce,NONE); FILL(s,NONE); FILL(e,NONE); FILL(st,NONE);
    if :: opt -> SETTLE() :: else fi;
    known = (cp.m != 0 && (cp.m == ds || ex[cp.m] != 0));     /* a stream that the record knows */
    if
    :: !opt || known || !pos -> skip
    :: opt && !known && pos ->
       if
       :: stale -> STOP(off)
#ifndef M_STATEFUL
       :: !stale && state -> STOP(true)
#endif
#ifndef M_GROUP
       :: !stale && GROUP_DIFFERS -> STOP(foreign)
#endif
#ifndef M_PARTLY
       :: !stale && lostany && !lostall -> STOP(true)
#endif
       :: else
       fi
    fi;
    p = 0;
    do
    :: p < NP ->
       if
       :: SUB(p) && pos && POS(p) != NONE -> st[p] = POS(p)
       :: SUB(p) && !(pos && POS(p) != NONE) && KNOWN_TOPIC(p) -> st[p] = 0
       :: SUB(p) && !(pos && POS(p) != NONE) && !(KNOWN_TOPIC(p)) -> st[p] = 0
       :: SUB(p) && !(pos && POS(p) != NONE) && !(KNOWN_TOPIC(p)) -> st[p] = K  /* default="latest" */
#ifdef GROUPED
       :: SUB(p) && !pos && grp[p] != NONE -> st[p] = grp[p]                     /* default="committed" */
#endif
#ifdef ANYSTART
       :: SUB(p) -> st[p] = 0
       :: SUB(p) -> st[p] = 1
       :: SUB(p) -> st[p] = K-1
       :: SUB(p) -> st[p] = K
#endif
       :: !(SUB(p)) -> skip
       fi;
       p++
    :: else -> break
    od;
    p = 0; known = 0; CLEAN; printf("MSC: run %d starts: option %d, startingOffsets %d\n", id, opt, st[0]) }

  /* Spark: metadata, then the latest files of offsets/ and commits/ */
  atomic { LIVING;
    if :: cp.m == 0 -> fresh = (cp.n == 0 && !cp.hs); streams++; cp.m = streams :: else fi;
    m = cp.m }
  atomic { LIVING;
    if
    :: cp.n == 0 -> b = 0
    :: cp.n > 1 && !cp.h0 -> goto fail                            /* offsets/n-2 is missing */
    :: cp.n > 0 && (cp.n == 1 || cp.h0) && cp.c == cp.n -> b = cp.n; SET(s,cp.e1)
    :: cp.n > 0 && (cp.n == 1 || cp.h0) && cp.c != cp.n -> b = cp.n-1; SET(e,cp.e1); con = 1; early = 1;
       if
       :: b > 0 -> SET(s,cp.e0)
       :: b == 0 && cp.hs -> SET(s,cp.src)
       :: b == 0 && !cp.hs -> SET(s,st); SET(cp.src,st); cp.hs = 1
       fi
    fi;
    printf("MSC: run %d is stream %d, batch %d from %d\n", id, m, b, s[0]) }

batch:
  if
  :: con -> skip
  :: else ->
     atomic { LIVING;
       if
       :: b == 0 && cp.hs -> SET(s,cp.src)
       :: b == 0 && !cp.hs -> SET(s,st); SET(cp.src,st); cp.hs = 1
       :: else
       fi;
       p = 0; got = 0;
       do
       :: p < NP ->
          e[p] = s[p];
#if NP == 2 && !defined(TOPICS)
          if :: p == 1 && b > 0 && !there -> there = 1 :: true fi;
          if :: p == 1 && b == 0 && there && s[p] == NONE -> got = 0; break :: else fi;
#endif
          if
          :: !(SUB(p)) -> e[p] = NONE
          :: SUB(p) ->
             if :: e[p] == NONE -> e[p] = 0 :: else fi;           /* new to the stream: from its begin */
             do :: e[p] < K -> e[p]++; got = 1 :: true -> break od
          fi;
          p++
       :: else -> break
       od;
       p = 0;
       if
       :: !got && ALL(AT_END_) -> goto done
       :: !got && !(ALL(AT_END_)) -> goto dead                    /* it waits */
       :: got && b < cp.n -> goto fail                            /* offsets/b exists */
       :: got && b >= cp.n ->
          cp.h0 = (b > 0 && cp.n == b);
          if :: cp.h0 -> SET(cp.e0,cp.e1) :: else -> FILL(cp.e0,NONE) fi;
          SET(cp.e1,e); cp.n = b+1;
          printf("MSC: run %d writes offsets/%d: %d to %d\n", id, b, s[0], e[0])
       fi;
       got = 0 }
  fi;

  /* plan: the first one of a process takes over; settle */
  atomic { LIVING;
    if
    :: !planned && AHEAD_ -> STOP(true)
    :: !planned && !(AHEAD_) -> owner = id+1; planned = 1; recorded = 1
    :: planned && owner != id+1 -> goto fail
    :: else
    fi;
    SETTLE();
#ifndef NO_DROP
    if :: opt && ds != m && pos && !stale && !state && BACK && !(DROP_DIFFERS) -> DROP() :: else fi;
#endif
    rep = (ds == m && db == b); early = 0; CLEAN }

  /* commit(): the checkpoint is read, the metadata last */
#ifdef M_METAFIRST
  atomic { LIVING; if :: opt && cp.m != m -> STOP(DAMAGED) :: else fi }
#endif
  atomic { LIVING;
    if
    :: opt && cp.n == b+1 -> SET(ce,cp.e1)
    :: opt && cp.n == b+2 && cp.h0 -> SET(ce,cp.e0)
    :: opt && cp.n != b+1 && !(cp.n == b+2 && cp.h0) -> STOP(DAMAGED)
    :: !opt
    fi }
  atomic { LIVING;
    if
    :: opt && b == 0 && cp.hs -> SET(cs,cp.src)
    :: opt && b > 0 && cp.n == b+1 && cp.h0 -> SET(cs,cp.e0)
    :: else
    fi }
#if !defined(M_METAFIRST) && !defined(M_NOMETA)
  atomic { LIVING; if :: opt && cp.m != m -> STOP(DAMAGED) :: else fi }
#endif

  atomic { LIVING;
    if :: owner != id+1 -> goto fail :: else fi;
    LOOK();
    if
    :: rep -> REPLAY()
    :: !rep && ds == m && b < db -> STOP(DAMAGED)
    :: !rep && ds != m && ex[m] > b+1 -> STOP(DAMAGED)
    :: !rep && ds != m && ex[m] == b+1 ->     /* decided before another stream came: counted */
       same = 1; ROWS_(SEEN1());
       if :: !same -> STOP(DAMAGED) :: else fi
    :: !rep && !(ds == m && b < db) && !(ds != m && ex[m] > b) ->
       if
       :: !opt && lostany -> STOP(true)
       :: !opt && !lostany -> if :: ds != m && any -> accepted = 1 :: else fi
       :: opt && ds == m -> GO_ON()
       :: opt && ds != m -> HAND_OVER()
       fi;
       DECIDE()
    fi;
    fresh = 0; FILL(cs,NONE); CLEAN }
#ifdef M_GROUPAPART
  atomic { LIVING; if :: opt && !rep && ds == m && db == b -> MOVE_GROUP() :: else fi }
#endif

  /* settle, then Spark's commit log */
  atomic { LIVING; if :: ds == m && db == b -> SETTLE(); if :: lostany -> goto fail :: else fi :: else fi; CLEAN }
  atomic { LIVING;
    if :: cp.c == b+1 -> goto fail :: cp.c < b+1 -> cp.c = b+1 :: else fi;
    do
    :: p < NP -> assert(accepted || !opt || qs != m || qb != b || stale || e[p] == NONE || (pe[p] == e[p] && (foreign || grp[p] == pe[p]))) /* (5) */; p++
    :: else -> break
    od;
    p = 0; printf("MSC: run %d writes commits/%d\n", id, b);
    SET(s,e); FILL(e,NONE); FILL(cs,NONE); FILL(ce,NONE); b++; con = 0; rep = 0 }
  goto batch;

done:
  atomic {
    res[id] = DONE;
    if :: planned -> ROWS_(FINAL1()) :: else fi;    /* else the next batch is checked */
#ifdef REACH
    assert(ndelete + nrestore + nhalf + nexpire + nforeign + nrule + noff + zombies != 0 || accepted);
#endif
    goto dead }
human:
  atomic { res[id] = HUMAN; printf("MSC: run %d stops for an operator\n", id); goto dead }
fail:
  atomic { res[id] = ERR; printf("MSC: run %d fails\n", id); assert(quiet != id+1) /* (4) */ }
dead:
  atomic {
    alive[id] = 0; if :: quiet == id+1 -> quiet = 0 :: else fi;
    if :: res[id] == RUNNING -> res[id] = ERR :: else fi;
    m = 0; b = 0; p = 0; FILL(s,0); FILL(e,0); FILL(st,0); FILL(cs,0); FILL(ce,0);
    CLEAN;
    con = 0; planned = 0; known = 0; fresh = 0; early = 0; rep = 0; got = 0 }
}

#define EMPTY_ (cp.m == 0 && cp.n == 0 && cp.c == 0 && !cp.hs)
#define FAULT damaged = 1; NOQUIET
#if NDELETE + NRESTORE + NHALF + NEXPIRE + NFOREIGN + NRULE
proctype Fault() {
  byte p;
  do
#if NDELETE
  :: atomic { ndelete > 0 && !(EMPTY_) -> ndelete--; FAULT; DELETE(cp); printf("MSC: the checkpoint is deleted\n") }
#endif
#if NRESTORE
  :: atomic { !copied && cp.m != 0 -> copied = 1; MOVE(copy,cp); printf("MSC: the checkpoint is copied\n") }
  :: atomic { nrestore > 0 && copied -> nrestore--; FAULT; MOVE(cp,copy); DELETE(copy); printf("MSC: the copy is put back\n") }
#endif
#if NHALF
  :: atomic { nhalf > 0 && cp.m != 0 -> nhalf--; FAULT; cp.m = 0; printf("MSC: metadata is deleted\n") }
  :: atomic { nhalf > 0 && cp.n != 0 -> nhalf--; FAULT; cp.n = 0; FILL(cp.e1,NONE); cp.h0 = 0; FILL(cp.e0,NONE); printf("MSC: offsets/ is deleted\n") }
  :: atomic { nhalf > 0 && cp.h0 -> nhalf--; FAULT; cp.h0 = 0; FILL(cp.e0,NONE); printf("MSC: the older file of offsets/ is deleted\n") }
  :: atomic { nhalf > 0 && cp.hs -> nhalf--; FAULT; cp.hs = 0; FILL(cp.src,NONE); printf("MSC: sources/ is deleted\n") }
  :: atomic { nhalf > 0 && cp.c != 0 -> nhalf--; FAULT; cp.c = 0; printf("MSC: commits/ is deleted\n") }
#endif
#if NEXPIRE
  :: atomic { nexpire > 0 -> p = 0; do :: p < NP*K && tx[p] != OPEN -> p++ :: p < NP*K && tx[p] == OPEN -> if :: break :: p++ fi :: p == NP*K -> break od;
       if :: p < NP*K -> tx[p] = LOST; nexpire--; NOQUIET; printf("MSC: the transaction of row %d expires\n", p) :: else fi; p = 0 }
#endif
#if NFOREIGN
  :: atomic { nforeign > 0 && grp[0] != NONE -> nforeign--; NOQUIET;
       if :: grp[0] = NONE :: grp[0] != 0 -> grp[0] = 0 :: grp[0] != K -> grp[0] = K fi;
       foreign = (pos && grp[0] != pe[0]); printf("MSC: the group is reset to %d\n", grp[0]) }
#endif
#if NRULE
  :: atomic { nrule > 0 && pos && !accepted -> nrule--; NOQUIET; owner = 0; printf("MSC: --use record\n");
       if :: stale -> accepted = 1 :: else fi;
       stale = 0; foreign = 0; p = 0;
       do :: p < NP -> if :: pe[p] != NONE -> grp[p] = pe[p] :: else fi; p++ :: else -> break od; p = 0 }
  :: atomic { nrule > 0 && grp[0] != NONE && recorded -> nrule--; NOQUIET; owner = 0; accepted = 1; printf("MSC: --use group\n");
       pos = 1; stale = 0; foreign = 0; qs = 0; p = 0;
       do :: p < NP -> if :: grp[p] != NONE -> pe[p] = grp[p] :: else fi; p++ :: else -> break od; p = 0 }
  :: atomic { nrule > 0 -> SETTLE();
       if
       :: lostany -> nrule--; NOQUIET; owner = 0; printf("MSC: resolve\n"); if :: ROWS_(COMPLETE1()) :: accepted = 1 fi; ROWS_(CLEAR1())
       :: else
       fi }
#endif
  od
}
#endif

init {
  byte i;
  atomic {
    DELETE(cp); DELETE(copy); FILL(ps,NONE); FILL(pe,NONE); FILL(grp,NONE);
#ifdef GROUPED
    grp[0] = 1; vis[0] = 1; based[0] = 1;
#endif
#ifdef OWNSINK
    vis[0] = 1; based[0] = 1; streams = 1;
    cp.m = 1; cp.hs = 1; cp.src[0] = 0; cp.n = 1; cp.e1[0] = 1; cp.c = 1;
    if
    :: cp.n = 2; cp.h0 = 1; cp.e0[0] = 1; cp.e1[0] = 2; if :: vis[1] = 1 :: true fi
    :: true
    fi;
#endif
#if NDELETE + NRESTORE + NHALF + NEXPIRE + NFOREIGN + NRULE
    run Fault()
#else
    skip
#endif
  }
  /* a new run at any moment: the older one has stopped, or is dead, or lives on as a zombie */
  do
  :: i < R ->
     atomic {
       if
       :: i > 0 && alive[i-1] -> alive[i-1] = 0; (res[i-1] != RUNNING); printf("MSC: run %d is killed\n", i-1)
       :: i > 0 && alive[i-1] && zombies > 0 -> zombies--
       :: i == 0 || !alive[i-1]
       fi;
       quiet = 0;
       if
       :: ALONE && EMPTY_ -> damaged = 0; quiet = i+1
       :: ALONE && !(EMPTY_) && !damaged -> quiet = i+1
       :: else
       fi;
       /* what an operator does after a stop: the new directory is deleted */
       if :: i > 0 && res[i-1] == HUMAN && ALONE -> DELETE(cp); damaged = 0;
#ifdef OWNSINK
            accepted = 1;                         /* of another sink's rows nothing is known */
#endif
            printf("MSC: the operator deletes the checkpoint\n") :: true fi;
       alive[i] = 1;
#if NP == 2 && defined(TOPICS)
       if :: run Run(i,1,1) :: run Run(i,1,0); resub = 1 fi;
#else
       if :: run Run(i,1,0) :: noff > 0 -> noff--; off = 1; run Run(i,0,0) fi;
#endif
       i++ }
  :: i == R -> break
  od
}
