/* claims.pml -- two identities of one query that take a source group, or a stream, at once, as a model for Spin.
 *
 * eos.pml and offsets.pml have one identity. A query gets another one with its name, its prefix, or the place of
 * its checkpoint. Each has a record and drivers of its own, so neither fences the other. What is modelled is what
 * the log's claims tell each of them of the other. A decision is one step here, which only the run that opened the
 * log of its identity last can make, and its rows are in it: eos.pml shows why that holds.
 * One atomic step = one record, one read of the log, or one file of the checkpoint. A claim is in the transaction
 * of a record: it is in the log when it is sent, and counts when that is committed.
 *
 * Size (-D): R runs in all, each of any identity; K rows of the source, a batch each
 * World and faults (-D, default 0); a run may crash at any step:
 *   NZOMBIE    a run lives on while the next one starts (default 1)
 *   NCOPY      a directory is copied to that of the other identity, with its stream
 *   NDELETE    a directory is deleted
 *   NEXPIRE    an open transaction of a driver times out
 *   NOGROUP    without eos.source.group.id: of a copied stream the claims alone tell
 *   CROSSED    two queries with a group each; the claim of each is in the partition of the other's record
 * What is asserted, with the numbers of eos.pml:
 *   (2) no row is visible twice
 *   (3) at the end of the source each row is visible once
 *   (4) a stop has a reason: there is another identity, or another directory; and no two wait for each other
 *   REACH      is the opposite: one identity is stopped, and the other one gets to the end
 * Mutations (-D), one rule taken back each: see run.sh and README.md.
 */
#ifndef R
#define R 2
#endif
#ifndef K
#define K 2
#endif
#ifndef NZOMBIE
#define NZOMBIE 1
#endif
#ifndef NCOPY
#define NCOPY 0
#endif
#ifndef NDELETE
#define NDELETE 0
#endif
#ifndef NEXPIRE
#define NEXPIRE 0
#endif
#define NS R             /* streams: each run may begin one */
#define AT(x) ((x)*NS+m-1)
#define OTHER (1-i)

/* ---- the latest record of each identity ---- */
byte owner[2];           /* 1+run that has opened its log last; RETIRER: that of the other identity */
byte pos[2], ps[2];      /* [source] 1+offset (0: none), and the stream that has moved it */
byte ds[2];              /* [latest] stream of the latest decision (0: none) */
byte ex[2*NS];           /* [decided] last decided batch+1 of each stream */
bit  rt[2*NS];           /* [retired] */
byte grp;                /* the group's copy: 1+offset (0: none) */
/* ---- claims: their places in the log; 0: none ---- */
byte end_;               /* the log's end */
byte cg[2], og[2];       /* of the group: committed, open */
byte cs[2*NS], os[2*NS]; /* of each stream */
/* ---- Spark's checkpoint in each directory: stream (0: empty), next batch, begin ---- */
byte cm[2], cn[2], cb[2];
byte streams;
byte vis[K];
bit  alive[R];
byte zombies = NZOMBIE, ncopy = NCOPY, ndelete = NDELETE, nexpire = NEXPIRE;
bit  other, halted;      /* for the assertions only */

#define RETIRER (R+1+id)
#define LEFT(x) (ds[x] != 0 && rt[(x)*NS+ds[x]-1])
#define START (begin+b)
#define MINE (owner[i] == id+1)
#define DECIDED ex[AT(i)]
/* [check_former] another stream has followed there, of the same group */
#if defined(NOGROUP) || defined(M_FOLLOWED)
#define HAS_FOLLOWED false
#else
#define HAS_FOLLOWED (rt[AT(OTHER)] && !LEFT(OTHER))
#endif
/* reading claims waits for open transactions before the end that is read to */
#ifdef M_CLAIMNOWAIT
#define IS_READ(open,end) true
#else
#define IS_READ(open,end) (open == 0 || open >= end)
#endif
/* [check_claims] the other one's is new since the claims were read, and before the own one */
#define IS_NEW(claim) (!known && claim >= reached && claim < own && claim != 0)

/* a stop, and the reason that must be there */
#define STOP(what) printf(what, id); assert(other || !MINE) /* (4) */; goto stop
/* opening the log of an identity aborts what is open there */
inline OPEN(x,who) { owner[x] = who; og[x] = 0; s = 0; do :: s < NS -> os[x*NS+s] = 0; s++ :: else -> break od; s = 0 }
inline LOOK(claim,open) { IS_READ(open,end_+1) -> known = (claim != 0); reached = end_+1 }
/* in the transaction of its record: send, then compare */
inline SEND(open) {
	if
	:: !MINE -> goto fail
	:: MINE -> sent = 1; end_++; own = end_; open = own
	fi }
inline COMPARE(claim,theirs,open) {
	if
	:: !MINE -> goto fail
	:: MINE && IS_READ(theirs,own) ->
		if
		:: IS_NEW(claim) -> open = 0; STOP("MSC: run %d stops: claimed twice\n")
		:: else
		fi
	fi }

proctype Run(byte id; bit i) {
	byte m, b, begin, s, reached, own, start;
	bit known, former, sent;
	{
	/* the program and Spark: a new checkpoint begins where the record says [starting_offsets] */
	atomic {
		if
		:: cm[i] == 0 -> streams++; cm[i] = streams; cn[i] = 0; cb[i] = (pos[i] == 0 -> 0 : pos[i]-1)
		:: else
		fi;
		m = cm[i]; b = cn[i]; begin = cb[i];
		printf("MSC: run %d of identity %d: stream %d, batch %d at %d\n", id, i, m, b, begin+b);
		if :: START >= K -> goto done :: else fi
	}
	/* the first plan: join, open, read */
	atomic {
		OPEN(i,id+1);
		if :: DECIDED > b -> goto batch :: else fi;
#ifdef NOGROUP
		goto batch
#endif
		if :: pos[i] != 0 && ps[i] == m -> goto batch :: else fi;
		start = pos[i]
	}
	/* [check_former] who has written the stream, and does it stand where the batch begins? */
	atomic { LOOK(cs[AT(OTHER)],os[AT(OTHER)]) }
	if
	:: known ->
		atomic {
			if
			:: ex[AT(OTHER)] > b -> STOP("MSC: run %d stops: the other identity has decided the batch\n")
			:: b > 0 && ex[AT(OTHER)] == b -> former = 1; start = pos[OTHER]
			:: else
			fi }
	:: else
	fi;
#ifdef M_NOLOOK
	reached = end_+1; known = 0;
#else
	/* [find_movers] who has moved the group, and further? */
	if
	:: !former ->
		atomic { LOOK(cg[OTHER],og[OTHER]) }
		if
		:: known ->
			atomic {
				if
				:: pos[OTHER] > start && !LEFT(OTHER) -> STOP("MSC: run %d stops: the other identity has moved the group\n")
#ifndef M_LEFTEQUAL
				:: pos[OTHER] == start && LEFT(i) && !LEFT(OTHER) -> STOP("MSC: run %d stops: the query has gone to the other identity\n")
#endif
				:: else
				fi }
		:: else
		fi
	:: else
	fi;
#endif
	/* [judge] */
	atomic {
		if
		:: start == 0 && b > 0 -> STOP("MSC: run %d stops: begun elsewhere\n")
		:: start == 0 && b == 0 && grp != 0 && grp != START+1 -> STOP("MSC: run %d stops: foreign group\n")
		:: start != 0 && start != START+1 -> STOP("MSC: run %d stops: begins elsewhere\n")
		:: start != 0 && start == START+1 && !former && grp != start -> STOP("MSC: run %d stops: group differs\n")
		:: else
		fi }
	/* the first position */
	if
	:: start == 0 || former ->
#ifdef M_CLAIMBEFORE
		own = end_+1;
		if :: !former -> atomic { COMPARE(cg[OTHER],og[OTHER],og[i]) } :: else fi;
#endif
		atomic { if :: pos[i] == 0 -> SEND(og[i]) :: else fi }
#if !defined(M_GROUPCLAIM) && !defined(M_CLAIMBEFORE)
		if :: sent && !former -> atomic { COMPARE(cg[OTHER],og[OTHER],og[i]) } :: else fi;
#endif
		atomic {
			if
			:: !MINE || (sent && og[i] != own) -> goto fail
			:: else ->
				pos[i] = START+1; ps[i] = m; grp = START+1;
				if :: sent -> cg[i] = own; og[i] = 0 :: else fi;
				printf("MSC: run %d writes the first position of identity %d\n", id, i)
			fi;
			sent = 0; own = 0; former = 0; known = 0; reached = 0; start = 0 }
	:: else -> atomic { known = 0; reached = 0; start = 0 }
	fi;

batch:
	if :: DECIDED > b -> goto spark :: else fi;
	/* [leave_former_identities] before the first decision of a stream */
	if
	:: DECIDED == 0 ->
		atomic { LOOK(cs[AT(OTHER)],os[AT(OTHER)]) }
		if
		:: known ->
			atomic { if :: ex[AT(OTHER)] > b -> STOP("MSC: run %d stops: the other identity has decided the batch\n") :: else fi }
#ifndef M_NORETIRE
			if
			:: HAS_FOLLOWED -> STOP("MSC: run %d stops: another stream has followed there\n")
			:: ex[AT(OTHER)] != 0 && !rt[AT(OTHER)] ->
				atomic { OPEN(OTHER,RETIRER); printf("MSC: run %d opens the log of the other identity\n", id) }
				atomic {
#ifndef M_RETIREBLIND
					if :: ex[AT(OTHER)] > b -> STOP("MSC: run %d stops: the other identity has decided the batch\n") :: else fi;
#endif
					if :: HAS_FOLLOWED -> STOP("MSC: run %d stops: another stream has followed there\n") :: else fi;
					if
					:: owner[OTHER] != RETIRER -> goto fail
					:: else -> rt[AT(OTHER)] = 1; printf("MSC: run %d retires stream %d there\n", id, m)
					fi }
			:: else
			fi
#endif
		:: else
		fi
	:: else
	fi;
	/* [_check_source]; a retired stream is refused */
	atomic {
		if
		:: !MINE -> goto fail
		:: MINE && rt[AT(i)] -> STOP("MSC: run %d stops: the stream is retired\n")
#ifndef NOGROUP
		:: MINE && !rt[AT(i)] && pos[i] != START+1 -> STOP("MSC: run %d stops: begins elsewhere\n")
		:: MINE && !rt[AT(i)] && pos[i] == START+1 && ps[i] != m && grp != pos[i] -> STOP("MSC: run %d stops: group differs\n")
#endif
		:: else
		fi }
	/* the decision: rows, offsets, the stream's claim and the record */
	if
	:: DECIDED == 0 ->
		atomic { SEND(os[AT(i)]) }
#ifndef M_STREAMCLAIM
		atomic { COMPARE(cs[AT(OTHER)],os[AT(OTHER)],os[AT(i)]) }
#endif
	:: else
	fi;
	atomic {
		if
		:: !MINE || (sent && os[AT(i)] != own) -> goto fail
		:: else ->
			if :: sent -> cs[AT(i)] = own; os[AT(i)] = 0 :: else fi;
			if :: ds[i] != 0 && ds[i] != m -> rt[i*NS+ds[i]-1] = 1 :: else fi;
			ds[i] = m; ex[AT(i)] = b+1; pos[i] = START+2; ps[i] = m; grp = START+2;
			printf("MSC: run %d of identity %d decides batch %d of stream %d: row %d\n", id, i, b, m, START);
			vis[START]++; assert(vis[START] < 2) /* (2) */
		fi;
		sent = 0; own = 0; known = 0; reached = 0 }
spark:
	atomic {
		if
		:: cm[i] == m && cn[i] == b -> cn[i] = b+1; b++
		:: else -> goto fail
		fi;
		if :: START < K -> goto batch :: else fi }
done:
	atomic {
		s = 0; do :: s < K -> assert(vis[s] == 1) /* (3) */; s++ :: else -> break od;
#ifdef REACH
		assert(!halted);
#endif
		goto end }
stop:
	halted = 1;
fail:
	atomic { if :: MINE -> OPEN(i,0) :: else fi }     /* its client aborts what is open */
	} unless { !alive[id] };
end:
	atomic { alive[id] = 0; m = 0; b = 0; begin = 0; s = 0; known = 0; reached = 0; own = 0; former = 0; start = 0; sent = 0 }
}

#ifdef CROSSED
byte orec[2];            /* the place of a record whose transaction is open */
bit  waits[2];
/* a first position: its claim and its record are sent to two partitions, and arrive in any order */
proctype Crossed(bit i) {
	byte own;
	if
	:: atomic { end_++; own = end_ }; atomic { end_++; orec[i] = end_ }
	:: atomic { end_++; orec[i] = end_ }; atomic { end_++; own = end_ }
	fi;
	waits[i] = 1;
	atomic { orec[OTHER] == 0 || orec[OTHER] > own -> waits[i] = 0 }
	orec[i] = 0
}
#define HELD(i) (waits[i] && orec[1-(i)] != 0)
#endif

/* A new run of any identity, at any moment: the older ones have ended, are dead, or live on as zombies. */
active proctype World() {
	byte runs, k; bit i, before;
#ifdef CROSSED
	atomic { run Crossed(0); run Crossed(1) }
	timeout -> assert(!waits[0] && !waits[1])         /* (4) */
#else
	do
	:: atomic { runs < R ->
		if
		:: i = 0
#ifdef NOGROUP           /* another checkpoint begins at the source's begin, as without the sink */
		:: cm[0] != 0 && (cm[1] != 0 || ncopy > 0) -> i = 1
#else
		:: i = 1
#endif
		fi;
		other = other || (runs > 0 && i != before); before = i;
		if
#ifdef NOGROUP
		:: i == 0 || cm[1] != 0
#else
		:: true
#endif
#if NCOPY
		:: ncopy > 0 && cm[OTHER] != 0 -> ncopy--; other = 1; cm[i] = cm[OTHER]; cn[i] = cn[OTHER]; cb[i] = cb[OTHER]; printf("MSC: the directory of identity %d is copied to that of %d\n", OTHER, i)
#endif
#if NDELETE
		:: ndelete > 0 && cm[i] != 0 -> ndelete--; other = 1; cm[i] = 0; cn[i] = 0; cb[i] = 0; printf("MSC: the directory of identity %d is deleted\n", i)
#endif
		fi;
		k = 0;
		do
		:: k < runs -> if :: alive[k] -> if :: alive[k] = 0 :: zombies > 0 -> zombies-- fi :: else fi; k++
		:: else -> break
		od;
		k = 0; alive[runs] = 1; run Run(runs,i); runs++; i = 0 }
#if NEXPIRE
	:: atomic { nexpire > 0 -> if :: i = 0 :: i = 1 fi;
		if
		:: og[i] != 0 -> nexpire--; og[i] = 0; printf("MSC: the transaction of identity %d times out\n", i)
		:: else
		fi;
		i = 0 }
#endif
	:: break
	od
#endif
}
