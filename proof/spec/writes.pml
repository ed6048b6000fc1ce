/* writes.pml -- single writes by number (eos.write.id, txnVersion) as a model for Spin.
 *
 * eos.pml has the two phases and the fencing of one stream, whose batches come in order. The numbers of
 * single writes come in any order, at the same time, and again: a job runs its write under its number until
 * that ends well. What is modelled is what the record keeps of numbers, and what a job is told.
 * One atomic step = one record, one read of the log, or one request; names in brackets are those of `Step`.
 *
 * Size (-D): N numbers; R runs of jobs in all, each of any number; KEEP how many numbers the record keeps
 * Fault budgets (-D, default 0); a run may crash, or go on as a zombie, at any step:
 *   NEXPIRE    an open transaction times out
 * What is asserted, with the numbers of eos.pml:
 *   (2) no write is visible twice
 *   (3) a write that ends well, or is skipped, is visible once
 *   (4) a stop has a reason: another run has taken over, a transaction has expired, or the number is forgotten
 *   REACH      is the opposite: a number is written, forgotten, and refused
 * Mutations (-D), one rule taken back each: see run.sh and README.md.
 */
#ifndef N
#define N 2
#endif
#ifndef R
#define R 3
#endif
#ifndef KEEP
#define KEEP 1
#endif
#ifndef NEXPIRE
#define NEXPIRE 0
#endif
#define NONE 255
mtype = { UNUSED, OPEN, COMMITTED, ABORTED };

/* Kafka: a transaction of each run, the member, and the latest record. */
mtype txn[R] = UNUSED;
byte number[R];
byte member = NONE;
byte seq = 0;
byte decided = NONE;   /* the run whose transaction the record names */
bool kept[N];          /* [written] */
byte below = 0;        /* [forgotten_below]: numbers under it that are not kept are not known any more */
byte vis[N];
byte expire = NEXPIRE;
byte alive = 0;        /* runs that were started */

/* COMMIT what a record names. */
inline commit(run_) {
	if
	:: run_ != NONE && txn[run_] == OPEN ->
		txn[run_] = COMMITTED; vis[number[run_]]++; assert(vis[number[run_]] < 2)
	:: else
	fi
}

/* Add a number; the lowest one is forgotten if there are too many. */
inline keep(n) {
	d_step {
		kept[n] = true; many = 0; i = 0;
		do
		:: i < N -> many = many + kept[i]; i++
		:: else -> break
		od;
		if
		:: many > KEEP ->
			i = 0;
			do
			:: !kept[i] -> i++
			:: else -> break
			od;
			kept[i] = false; below = i + 1
		:: else
		fi;
		i = 0; many = 0
	}
}

proctype Run(byte me) {
	byte n, mine, was, i, many;
	bool done, unknown, again = false;
	select(n : 0 .. N - 1);
	number[me] = n;
	/* START: one read of the log; what is decided there is committed before anything else. */
	atomic { mine = seq; was = decided; done = kept[n]; unknown = n < below }
#ifndef M_SKIPFIRST
	atomic { commit(was) }
#endif
	/* ASK_COORDINATORS. A write that was lost after its decision is written again. */
	atomic {
		if
		:: was != NONE && txn[was] == ABORTED ->
			again = number[was] == n;
#ifdef M_LOSTIGNORED
			skip
#else
			if
			:: !again -> goto refused
			:: else
			fi
#endif
		:: else
		fi
	}
#ifdef M_HIGHEST
	if
	:: !again && was != NONE && n <= number[was] -> goto skipped
#else
	if
	:: !again && done -> goto skipped
#endif
#ifndef M_FORGOTTEN
	:: !again && !done && unknown -> goto refused
#endif
	:: else
	fi;
	atomic { member = me }
	atomic {
		/* FENCE; then ABORT what was listed and is not decided. */
#ifndef M_NOCOMPARE
		if
		:: seq != mine -> goto refused
		:: else
		fi;
#endif
		seq++; mine = seq
	}
	atomic {
		i = 0;
		do
		:: i < R ->
			if
			:: txn[i] == OPEN && i != decided -> txn[i] = ABORTED
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
	txn[me] = OPEN;
	atomic {
		/* Vote and decide: the log's compare, and the member's. */
#ifndef M_NOCOMPARE
		if
		:: seq != mine || member != me -> goto refused
		:: else
		fi;
#endif
		if
		:: txn[me] != OPEN -> goto refused
		:: else
		fi;
		seq++; decided = me; keep(n)
	}
	atomic { commit(me) }
	if
	:: txn[me] != COMMITTED -> goto refused
	:: else
	fi;
skipped:
	assert(vis[n] == 1);
refused:
	skip
}

/* A run may stay where it is for ever: that is a crash, or a zombie that has not woken up yet. */
active proctype World() {
	byte i;
	do
	:: alive < R -> run Run(alive); alive++
	:: expire > 0 ->
		atomic {
			select(i : 0 .. R - 1);
			if
			:: txn[i] == OPEN -> txn[i] = ABORTED; expire--
			:: else
			fi
		}
	:: break
	od
}

#ifdef REACH
active proctype Reached() {
	byte i;
	atomic { below > 0 && vis[0] == 1; assert(false) }
}
#endif
