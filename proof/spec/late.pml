/* late.pml -- requests of a transaction that arrive twice, or late, as a model for Spin.
 *
 * The rows `late` of eos.pml have EndTxn only. Here each request of a transaction is a message, with what the
 * brokers compare when it arrives: the coordinator the epoch, a leader the epoch and the sequence number that it
 * knows, and before the first record whether the transaction is open (KIP-890, part 1). One id writes the rows of
 * one partition and the offset of a group, batch by batch: the driver's, or that of a task, whose attempts and
 * batches have an epoch each, and whose EndTxn any process sends. One atomic step = one request.
 *
 * Size (-D): NB batches of a row and an offset
 * Fault budgets (-D, default 0):
 *   NLATE      a request is sent again and arrives later, or has no answer and arrives later or never (default 1)
 *   NABORT     a transaction is given up; or another process fences its plan, and aborts it under its epoch
 *   KIND=...   only this request
 *   NOASK      is no budget: the group's leader does not ask the coordinator (Kafka 3.6)
 * What is asserted, with the numbers of eos.pml:
 *   (1) no commit that was not sent for these rows
 *   (2) no row is visible twice
 *   (3) after a batch its row is visible once
 *   (5) the group's offset is that of the latest visible row
 *   REACH      is the opposite: all is visible, and a late request was refused
 * Mutations (-D), one rule taken back each: see run.sh and README.md.
 */
#ifndef NB
#define NB 2
#endif
#ifndef NLATE
#define NLATE 1
#endif
#ifndef NABORT
#define NABORT 0
#endif
mtype = { ADD_PARTITION, PRODUCE, ADD_OFFSETS, COMMIT_OFFSET, END };

/* ---- the coordinator: epoch, open?, and the parts of the open transaction ---- */
byte ep; bit ongoing, has_rows, has_offset;
/* ---- the partition's leader: epoch and sequence that it knows, open rows; what readers see ---- */
byte kep, kseq, rows[NB], vis[NB];
/* ---- the group's leader ---- */
byte gep, pending, offset;   /* 1+batch */
/* ---- the sender: the batch whose EndTxn was sent in this transaction ---- */
bit  sent[NB];
bit  fenced;             /* [FENCE] its plan can be decided no more */
/* ---- a request under way: its kind, epoch, sequence number and batch ---- */
chan net = [NLATE] of { mtype, byte, byte, byte };
byte nlate = NLATE, nabort = NABORT;
bit  refused;            /* for REACH only */

#define MINE (e == ep)
#ifdef KIND
#define MAYBE_LATE(kind) (nlate > 0 && kind == KIND)
#else
#define MAYBE_LATE(kind) (nlate > 0)
#endif
inline ENDS(commit) {
	if
	:: has_rows -> i = 0;
		do
		:: i < NB ->
			if
			:: commit && rows[i] != 0 ->
				assert(sent[i]) /* (1) */;
				vis[i] = vis[i] + rows[i]; assert(vis[i] < 2) /* (2) */
			:: else
			fi;
			rows[i] = 0; i++
		:: else -> break
		od;
		i = 0
	:: else
	fi;
	if
	:: has_offset -> if :: commit && pending != 0 -> assert(sent[pending-1]) /* (1) */; assert(pending >= offset) /* (5) */; offset = pending :: else fi; pending = 0
	:: else
	fi;
	ongoing = 0; has_rows = 0; has_offset = 0 }
inline ARRIVES(kind,e,q,n) {
	if
	:: kind == ADD_PARTITION && MINE -> ongoing = 1; has_rows = 1
	:: kind == ADD_OFFSETS && MINE -> ongoing = 1; has_offset = 1
	:: kind == END && MINE && ongoing -> printf("MSC: EndTxn of epoch %d, batch %d\n", e, n); ENDS(1)
#ifdef M_ASK             /* the leader takes what it has not seen yet */
	:: kind == PRODUCE && (e > kep || (e == kep && q > kseq)) -> kep = e; kseq = q; rows[n]++
#else
	:: kind == PRODUCE && (e > kep || (e == kep && q > kseq)) && MINE && ongoing && has_rows -> kep = e; kseq = q; rows[n]++
#endif
#ifdef NOASK
	:: kind == COMMIT_OFFSET && e >= gep -> gep = e; pending = n+1
#else
	:: kind == COMMIT_OFFSET && e >= gep && MINE && ongoing && has_offset -> gep = e; pending = n+1
#endif
	:: else -> refused = 1; printf("MSC: a request of epoch %d is refused\n", e)
	fi }
/* it arrives; a copy may stay under way; or it has no answer, and the next attempt begins */
inline SEND(kind) {
	atomic {
		if
		:: true -> ARRIVES(kind,mine,seq,b)
		:: MAYBE_LATE(kind) -> nlate--; net!kind,mine,seq,b; printf("MSC: a copy is under way\n"); ARRIVES(kind,mine,seq,b)
		:: MAYBE_LATE(kind) -> nlate--; net!kind,mine,seq,b; printf("MSC: a request is under way\n"); goto again
		fi } }
inline INIT() { ep++; if :: has_rows -> kep = ep; kseq = 0 :: else fi; ENDS(0); mine = ep; seq = 0; fenced = 0; printf("MSC: epoch %d\n", ep) }

active proctype Sender() {
	byte b, mine, seq, i;
batch:
#ifdef M_EPOCH
	if :: b == 0 -> atomic { INIT() } :: else fi;
	goto write;
#endif
again:
	/* open: the log is read behind the init */
	atomic { INIT(); if :: vis[b] == 1 -> goto done :: else fi }
write:
	atomic { i = 0; do :: i < NB -> sent[i] = 0; i++ :: else -> break od; i = 0; seq++ }
	SEND(ADD_PARTITION);
	SEND(PRODUCE);
	SEND(ADD_OFFSETS);
	SEND(COMMIT_OFFSET);
	if
	:: atomic { nabort > 0 -> nabort--; printf("MSC: it is given up\n") }; goto again
	:: true
	fi;
	atomic { if :: ongoing && has_rows && has_offset && !fenced -> sent[b] = 1 :: else -> goto again fi }
	SEND(END);
	if :: vis[b] != 1 -> goto again :: else fi;
done:
	atomic { assert(vis[b] == 1) /* (3) */; assert(offset == b+1) /* (5) */; printf("MSC: batch %d is done\n", b); b++ }
	if
	:: b < NB -> goto batch
	:: else
	fi;
#ifdef REACH
	assert(!refused);
#endif
	skip
}

active proctype Net() {
	mtype kind; byte e, q, n, i;
	do
	:: atomic { nabort > 0 && ongoing -> nabort--; printf("MSC: another process fences the plan, and aborts\n"); fenced = 1; ENDS(0) }
	:: atomic { net?kind,e,q,n -> printf("MSC: a request arrives late\n"); ARRIVES(kind,e,q,n); kind = 0; e = 0; q = 0; n = 0 }
	od
}
