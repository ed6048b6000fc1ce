/* leaderless.pml -- transactions that end while a partition has no leader (KAFKA-20734), as a model for Spin.
 *
 * eos.pml ends a transaction in all of its partitions at once. Kafka 4 drops the marker of a partition that has no
 * leader, and calls the transaction complete. It hangs there: readers wait behind it, and the next transaction of
 * the same id that ends there ends it as well, with its own outcome. One partition is modelled, one id that writes
 * to it, and one driver at a time, since eos.pml shows why an older one does nothing more.
 * One atomic step = one request, or one record. Names in brackets are those of `Step`.
 *
 * Size and world (-D): NB batches of a row; R runs
 *   INLINE     the id is the driver's: rows and record are in one transaction, the record in a partition of the log
 * Fault budgets (-D, default 0); a run may crash at any step:
 *   NDOWN      the partition loses its leader, for a while (default 1)
 *   NLOG       the same of the partition of the log
 *   NTIMEOUT   a transaction times out
 *   NFAIL      an attempt of a task, or of the driver's write, fails and is repeated
 *   NRACE      the leader goes between the look for it and the marker of an abort
 * What is asserted, with the numbers of eos.pml:
 *   (2) no row is visible twice
 *   (3) after a batch its row is visible once
 *   (4) with all leaders back a run ends, and nothing hangs for which nothing tells how it has ended
 *   REACH      is the opposite: something has hung, and the last batch is visible
 * Mutations (-D), one rule taken back each: see run.sh and README.md.
 */
#ifndef NB
#define NB 2
#endif
#ifndef R
#define R 2
#endif
#ifndef NDOWN
#define NDOWN 1
#endif
#ifndef NLOG
#define NLOG 0
#endif
#ifndef NTIMEOUT
#define NTIMEOUT 0
#endif
#ifndef NFAIL
#define NFAIL 0
#endif
#ifndef NRACE
#define NRACE 0
#endif
mtype = { EMPTY, ONGOING, COMMITTED, ABORTED };

bit  leader = 1, logleader = 1;
/* ---- coordinator ---- */
byte ep; mtype st = EMPTY;
/* ---- the partition: rows whose transaction has not ended there, and what readers see ---- */
byte left[NB], vis[NB];
bit  hangs, commits;     /* its coordinator calls it complete; with a commit */
/* ---- the log: the decision; a record that hangs there, and whether its id's state still tells how it ended ---- */
byte db, de;
byte rec;                /* batch+1 of a record whose transaction has not ended there */
bit  rhangs, rcommits, told;
byte cn;                 /* Spark's commit log: the next batch */
bit  alive[R];
byte ndown = NDOWN, nlog = NLOG, ntimeout = NTIMEOUT, nfail = NFAIL, nrace = NRACE;
bit  hung;               /* for REACH only */

#define LEFT (left[0] != 0 || left[NB-1] != 0)
#define DECIDED (db != 0 && ep == de)
inline SHOW(commit) { k = 0; do :: k < NB -> if :: commit -> vis[k] = vis[k] + left[k]; assert(vis[k] < 2) /* (2) */ :: else fi; left[k] = 0; k++ :: else -> break od; k = 0; hangs = 0 }
inline RECORD(commit) { if :: commit && rec != 0 -> db = rec; de = ep :: else fi; rec = 0; rhangs = 0 }
/* the transaction ends at its coordinator; its markers are written where there is a leader */
inline END(commit) {
	st = (commit -> COMMITTED : ABORTED);
	if
	:: leader -> SHOW(commit)
	:: !leader && LEFT -> hangs = 1; hung = 1; commits = commit; printf("MSC: the transaction of epoch %d ends (commit %d), and its marker is dropped\n", ep, commit)
	:: else
	fi;
	if
	:: logleader -> RECORD(commit)
	:: !logleader && rec != 0 -> rhangs = 1; hung = 1; rcommits = commit; told = 1; printf("MSC: the record's marker is dropped (commit %d)\n", commit)
	:: else
	fi }
inline INIT() {
	if :: st == ONGOING -> END(0) :: else fi;
	told = 0; ep++; st = EMPTY; printf("MSC: epoch %d\n", ep) }
/* [COMMIT, ABORT] with a look for the leader before */
#ifdef M_LEADER
#define CAN_END true
#else
#define CAN_END leader
#endif
/* [LOOK] what hangs is ended as it ended elsewhere; a partition that cannot be looked at is waited for */
#ifdef M_LOOK
inline LOOK() { skip }
#else
inline LOOK() {
	atomic {
		if
		:: leader -> if :: hangs -> printf("MSC: what hangs is ended (commit %d)\n", commits); SHOW(commits) :: else fi
#ifdef M_UNSEEN
		:: !leader -> skip
#else
		:: !leader -> goto fail
#endif
		fi } }
#endif
/* [check_ended] a repeated attempt only looks */
#define MAY_BE_OPEN (!leader || hangs)
/* what is open and not decided: its epoch */
inline LIST() { atomic { listed = (st == ONGOING && !DECIDED -> ep : 0) } }
/* [FENCE, ABORT] exactly this */
#define OPEN_ (listed == ep && st == ONGOING)
inline ABORT() {
	atomic {
		if
		:: OPEN_ && CAN_END -> END(0)
		:: OPEN_ && leader && nrace > 0 -> nrace--; leader = 0; END(0)
		:: OPEN_ && !CAN_END -> goto fail
		:: else
		fi } }

#ifndef INLINE
inline COMMIT() {
	atomic {
		if
		:: st == ONGOING && DECIDED && CAN_END -> printf("MSC: EndTxn(commit) of batch %d\n", db-1); END(1)
		:: st == ONGOING && DECIDED && !CAN_END -> goto fail
		:: else
		fi } }

proctype Run(byte id) {
	byte b, e, k, tries, listed; bit lost;
	{
	/* the first plan, or one after a plan that came to nothing */
	COMMIT();
	LOOK();
	atomic {             /* [ASK_TOPICS] */
		lost = 0;
		if
		:: db != 0 && vis[db-1] == 0 && left[db-1] != 0 -> goto fail       /* hidden */
		:: db != 0 && vis[db-1] == 0 && left[db-1] == 0 -> lost = 1; printf("MSC: batch %d is lost\n", db-1)
		:: else
		fi }
	LIST();
#ifndef M_LISTBLIND
	LOOK();
#endif
	if
	:: listed != 0 ->
		ABORT();
#ifndef M_LOOKONCE
		LOOK();
#endif
		listed = 0
	:: else
	fi;
	atomic { b = cn; if :: b == NB -> goto end :: else fi }
batch:
	if :: db == b+1 && !lost -> goto passed :: else fi;
	tries = 0;
task:
	atomic { INIT(); e = ep }
#ifndef M_ATTEMPT
	atomic { if :: tries > 0 && MAY_BE_OPEN -> goto abort :: else fi }
#endif
	atomic { leader || !alive[id];
		if
		:: ep == e -> st = ONGOING; left[b]++; printf("MSC: run %d writes batch %d, epoch %d\n", id, b, e)
		:: else -> goto abort
		fi }
	if
	:: atomic { nfail > 0 -> nfail--; if :: ep == e && st == ONGOING -> END(0) :: ep == e :: else fi; tries++; printf("MSC: the attempt fails\n") }; goto task
	:: true
	fi;
	atomic {             /* vote and decide */
		if
		:: ep == e && st == ONGOING -> db = b+1; de = e; lost = 0; printf("MSC: run %d decides batch %d\n", id, b)
		:: else -> goto abort
		fi }
	COMMIT();
	if :: st == ONGOING || ep != e -> goto fail :: else fi;
passed:
	atomic { printf("MSC: run %d passes batch %d\n", id, b); assert(vis[b] == 1) /* (3) */; b++; cn = b;
		if
		:: b < NB -> goto batch
		:: else ->
#ifdef REACH
			assert(!hung);
#endif
			goto end
		fi }
abort:	/* Spark calls abort(), and starts the query again */
	LIST();
	ABORT();
	} unless { !alive[id] };
fail:
	atomic { alive[id] = 0 }
end:
	atomic { alive[id] = 0; b = 0; e = 0; k = 0; tries = 0; listed = 0; lost = 0 }
}
#else

/* the id's state tells how a record has ended: looked for before each init, which takes that away [end_in_log] */
#ifdef M_LOGINIT
inline OPEN() { atomic { INIT() } }
#else
inline OPEN() {
	atomic {
		if
		:: !logleader -> goto fail
		:: logleader ->
			if :: rhangs && told -> printf("MSC: the record is ended (commit %d)\n", rcommits); RECORD(rcommits) :: else fi;
			INIT()
		fi } }
#endif

proctype Run(byte id) {
	byte b, e, k, tries;
	{
	OPEN();
	atomic { !rhangs || !alive[id]; b = db }        /* the log is read to its end */
	LOOK();
batch:
	if :: b == NB -> goto done :: else fi;
	tries = 0;
write:
	if :: tries > 0 || b > 0 -> OPEN() :: else fi;
	atomic { !rhangs || !alive[id]; e = ep; if :: db == b+1 -> goto passed :: else fi }
#ifndef M_REPEATED
	atomic { if :: tries > 0 && MAY_BE_OPEN -> goto fail :: else fi }
#endif
	atomic { leader || !alive[id];
		if
		:: ep == e && st != ABORTED -> st = ONGOING; left[b]++; printf("MSC: run %d writes batch %d, epoch %d\n", id, b, e)
		:: else -> tries++; goto write
		fi }
	atomic { logleader || !alive[id];
		if
		:: ep == e && st == ONGOING -> rec = b+1; printf("MSC: run %d writes its record\n", id)
		:: else -> tries++; goto write
		fi }
	if
	:: atomic { nfail > 0 -> nfail--; tries++; printf("MSC: there is no answer\n"); if :: ep == e && st == ONGOING -> END(1) :: true fi }; goto write
	:: true
	fi;
	atomic {
		if
		:: ep == e && st == ONGOING -> printf("MSC: run %d decides batch %d\n", id, b); END(1)
		:: else -> tries++; goto write
		fi }
passed:
	b++;
	goto batch;
done:	/* what the driver has committed itself may hang until the next start [LOOK] */
	atomic {
		assert(hangs || (vis[0] == 1 && vis[NB-1] == 1)) /* (3) */;
#ifdef REACH
		assert(!hung || hangs);
#endif
		goto end }
	} unless { !alive[id] };
fail:
	atomic { alive[id] = 0 }
end:
	atomic { alive[id] = 0; b = 0; e = 0; k = 0; tries = 0 }
}
#endif

active proctype World() {
	byte runs, k;
	do
	:: atomic { runs < R ->
		if :: runs > 0 && alive[runs-1] -> alive[runs-1] = 0 :: else fi;
		alive[runs] = 1; printf("MSC: run %d starts\n", runs); run Run(runs); runs++ }
	:: atomic { ndown > 0 && leader -> ndown--; leader = 0; printf("MSC: the partition has no leader\n") }
	:: atomic { !leader -> leader = 1; printf("MSC: the partition has a leader\n") }
	:: atomic { nlog > 0 && logleader -> nlog--; logleader = 0; printf("MSC: the log has no leader\n") }
	:: atomic { !logleader -> logleader = 1; printf("MSC: the log has a leader\n") }
	:: atomic { ntimeout > 0 && st == ONGOING -> ntimeout--; printf("MSC: the transaction times out\n"); END(0); ep++ }
	:: runs == R -> break
	od;
	/* at last all leaders are back */
	do
	:: atomic { !leader -> leader = 1 }
	:: atomic { !logleader -> logleader = 1 }
	:: timeout -> assert(!alive[R-1]) /* (4) */; break
	od
}
