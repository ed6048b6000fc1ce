#!/bin/bash
# Model-checks eos.pml and the smaller models: run.sh [short|pairs|live|all]. A row: name ; clean|violation ; flags ; sets.
# JOBS=2 rows at a time, LIMIT=400 seconds each, MEM=7000 MB each; ONLY=pattern picks rows by name.
# A row of the pairs may be cut by LIMIT or MEM: that is said, and is no failure. Needs spin and gcc.
for tool in spin gcc; do
  command -v $tool >/dev/null || { echo "$tool is missing: apt-get install spin gcc"; exit 2; }
done
cd "$(dirname "$0")" || exit 2
H=$PWD; MODE=${1:-all}; B=$H/build/${MODE/all/run}; rm -rf "$B"; mkdir -p "$B"
N=0; J=${JOBS:-2}; MODEL=eos.pml
head_() { N=$((N+1)); HEAD="-- $1"; echo "$HEAD" >"$B/$(printf %03d $N).line"; }
row() { # name expected flags [sets]
  case " $MODE " in
    " all ") ;;
    *) case " $4 " in *" $MODE "*) ;; *) return;; esac;;
  esac
  [ -n "$ONLY" ] && ! [[ $1 =~ $ONLY ]] && return
  N=$((N+1)); while [ "$(jobs -rp | wc -l)" -ge "$J" ]; do wait -n; done
  (one "$@") >"$B/$(printf %03d $N).line" 2>&1 &
}
one() {
  d="$B/$(echo "$1" | tr -c 'a-zA-Z0-9\n' _)"; mkdir -p "$d"; cd "$d" || return
  search=-DSAFETY; how="-E"
  case "$3" in *-DLIVE*) search=-DNFAIR=3; how="-E -a -f -N ${1%%:*}";; esac
  # shellcheck disable=SC2086  # the flags are words
  spin $3 -a "$H/$MODEL" >spin.out 2>&1 &&
    gcc "$([ "$2" = violation ] || [ "$MODE" = short ] && echo -O0 || echo -O2)" $search -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM="${MEM:-7000}" -o pan pan.c 2>gcc.out ||
    { echo "$1: BUILD FAILED"; return; }
  # shellcheck disable=SC2086
  nice -n 15 timeout -s INT "${LIMIT:-400}" ./pan -m600000 $how -w24 >pan.out 2>&1
  v=$(grep -m1 '^pan:1:' pan.out); s=$(awk '/states, stored/{print $1; exit}' pan.out); t=$(awk '/elapsed time/{print $4; exit}' pan.out)
  if [ -n "$v" ]; then g=violation
  elif grep -q 'Search not completed\|Interrupted\|max search depth too small' pan.out; then g=cut
  elif [ -n "$s" ]; then g=clean; else g=cut; fi
  case "$v" in
    '') [ $g = cut ] && w="searched in part" || w=;;
    *"acceptance cycle"*) w="a fair run that never gets there";;
    *ndelete*) w="the end of the source";; *accepted*grp*) w="(5) record or group are not at the batch's end";;
    *accepted*ds==m*) w="(6) a reset is overwritten";;
    *accepted*vis*"<2"*) w="(2) two visible copies";; *accepted*vis*==1*) w="(3) passed, not visible once";;
    *accepted*) w="(4) a stop without need";;
    *"]==vis"*) w="(2) a part of a batch is visible";;
    *halted*|*hung*|*refused*) w="the end of the source";; *sent*) w="(1) commit without its own EndTxn";; *'!(alive'*) w="(4) stuck";; *waits*) w="(4) two wait for each other";;
    *lost*) w="(4) a transaction is left that holds up readers";;
    *vis*"<2"*) w="(2) two visible copies";; *vis*==1*) w="(3) passed, not visible once";;
    *quiet*) w="(4) a quiet restart fails";; *"res[(i-1)]"*) w="(4) stuck";; *jc*) w="(4) two runs replace each other in turns";;
    *"res[id]!=3"*) w="operator stop without need";; *'!(((('*) w="(1) abort after the decision";;
    *pvoted*) w="(1) decided without its vote";; *lb*) w="(1) commit without the decision";; *) w="$v";; esac
  case "$2 $g" in "$g $2"|"tried clean"|"tried cut") ;; *) w="$w UNEXPECTED";; esac
  printf '%-58s %-9s %10s states %6ss %s\n' "$1" $g "${s:--}" "${t:--}" "$w"
}
Q="-DQUIETCHK -DNOHUMAN"; ONE="-DR=2 -DNB=1"; TWO="-DR=2 -DNB=2"; P1="-DR=2 -DNB=1 -DNP=1"

head_ "the protocol; every run may crash or live on as a zombie at any step"
row "one batch" clean "$ONE $Q" short
row "two batches" tried "$TWO $Q"
row "three batches, the middle one empty" tried "-DR=2 -DNB=3 -DEMPTYB=1 $Q"
row "three runs, one partition" tried "-DR=3 -DNB=1 -DNP=1 $Q"
row "one slot" tried "$TWO -DK=1 $Q"
row "commit()'s process is kept" clean "$TWO -DNP=1 -DKEEP $Q"
row "a task writes in two requests" clean "$P1 -DHALF $Q"
row "a task writes few rows in two requests" clean "$P1 -DHALF -DFEW $Q"
row "a task writes in two requests, two partitions" tried "$ONE -DHALF $Q"
row "an older decision, settled, open or lost" clean "$P1 -DOLD $Q" short
row "an older decision, two partitions" tried "$ONE -DOLD $Q"
row "non-deterministic, an older decision" tried "$ONE -DOLD -DNONDET"
row "a replay with more rows, an older decision" clean "$P1 -DOLD -DGROW -DQUIETCHK"

head_ "one fault more"
row "a transaction times out" tried "$ONE -DNTIMEOUT=1 $Q"
row "a transaction times out, two batches, one partition" tried "$TWO -DNP=1 -DNTIMEOUT=1 $Q"
row "the session ends" tried "$ONE -DNSESSION=1 $Q"
row "commit() interrupted" tried "$ONE -DNABANDON=1 $Q"
row "a late task attempt" tried "$P1 -DNZTASK=1 $Q"
row "non-deterministic, a timeout" tried "$ONE -DNONDET -DNTIMEOUT=1"
row "non-deterministic, a timeout before the vote" tried "$ONE -DNONDET -DNTIMEOUT=1 -DEARLYT $Q"
row "a task dies, its transaction open" tried "$ONE -DNTDIE=1 $Q"
row "a list misses a transaction" clean "$P1 -DNHIDE=1 $Q"
row "a list misses a transaction, two partitions" tried "$ONE -DNHIDE=1 $Q"
row "the log's answer is lost" clean "$P1 -DNREPLY=1 $Q"
row "the log's answer is lost, two partitions" tried "$ONE -DNREPLY=1 $Q"
row "a read of the log is stale" clean "$P1 -DNSTALE=1 $Q" short
row "a read of the log is stale, an older decision" clean "$P1 -DOLD -DNSTALE=1 $Q"
row "a read of the log is stale, two partitions" tried "$ONE -DNSTALE=1 $Q"
row "the driver's id waits for a marker" clean "$P1 -DNENDING=1 $Q" short
row "the driver's id waits for a marker, an older decision" clean "$P1 -DOLD -DNENDING=1 $Q"
row "the driver's id waits for a marker, commit() interrupted" tried "$P1 -DNENDING=1 -DNABANDON=1 $Q"
row "the driver's id waits for a marker, a timeout" tried "$P1 -DNENDING=1 -DNTIMEOUT=1 $Q"
row "the driver's id waits for ever" clean "$P1 -DNENDING=1 -DFOREVER"
row "M_SETTLEWAITS" violation "$P1 -DNENDING=1 -DFOREVER -DM_SETTLEWAITS" short
row "a coordinator forgets, an older decision" clean "$P1 -DOLD -DNFORGET=1 $Q"
row "a coordinator forgets, two partitions" tried "$ONE -DOLD -DNFORGET=1 $Q"
row "a witness cannot be read" clean "$P1 -DOLD -DNWITNESS=1 -DAGAIN -DQUIETCHK" short
row "a witness cannot be read, two partitions" tried "$ONE -DOLD -DNWITNESS=1 -DAGAIN -DQUIETCHK"
row "a witness cannot be read, then a restart" tried "-DR=3 -DNB=1 -DNP=1 -DOLD -DNWITNESS=2 -DAGAIN"
row "a witness cannot be read, two batches" tried "$TWO -DNP=1 -DOLD -DNWITNESS=1 -DAGAIN -DQUIETCHK"
row "a witness cannot be read, the checkpoint is deleted" tried "$P1 -DOLD -DNWITNESS=1 -DNDELETE=1 -DAGAIN -DQUIETCHK"
row "forgotten and unreadable" clean "$P1 -DOLD -DNFORGET=1 -DNWITNESS=1 -DAGAIN -DQUIETCHK"
W="-DOLD=2 -DNWITNESS=3"
row "finished, forgotten and unreadable: no operator" clean "$TWO -DNP=1 $W $Q" short
row "finished, forgotten and unreadable, two partitions" tried "$TWO $W $Q"
row "the checkpoint is deleted" tried "$ONE -DNDELETE=1 -DQUIETCHK"
row "deleted, an older decision" tried "$ONE -DOLD -DNDELETE=1 -DQUIETCHK"
row "deleted and put back, an older decision" clean "$P1 -DOLD -DNDELETE=2 -DQUIETCHK"
row "deleted and put back, a replay with more rows" clean "$P1 -DOLD -DGROW -DNDELETE=2 -DQUIETCHK"
row "deleted and put back, two batches" tried "$TWO -DNP=1 -DOLD -DNDELETE=2 -DQUIETCHK"
row "an older copy of the checkpoint" clean "$TWO -DNP=1 -DNRESTORE=1 -DQUIETCHK"

head_ "rows in the transaction of the decision: of any task, or of all (INLINE=2)"
row "inline" clean "$P1 -DINLINE=1 $Q" short
row "inline, two partitions" tried "$ONE -DINLINE=1 $Q"
row "inline, all" clean "$ONE -DINLINE=2 $Q" short
row "inline, two batches, commit()'s process is kept" clean "$TWO -DNP=1 -DINLINE=1 -DKEEP $Q"
row "inline, an older decision" clean "$P1 -DINLINE=1 -DOLD $Q" short
row "inline, non-deterministic, an older decision" tried "$ONE -DINLINE=1 -DOLD -DNONDET"
row "inline, a replay with more rows, an older decision" clean "$P1 -DINLINE=1 -DOLD -DGROW -DQUIETCHK"
row "inline, a task writes in two requests" clean "$P1 -DINLINE=1 -DHALF $Q"
row "inline, a transaction times out" tried "$ONE -DINLINE=1 -DNTIMEOUT=1 $Q"
row "inline, all, a transaction times out" clean "$P1 -DINLINE=2 -DNTIMEOUT=1 $Q"
row "inline, the session ends" tried "$P1 -DINLINE=1 -DNSESSION=1 $Q"
row "inline, commit() interrupted" tried "$P1 -DINLINE=1 -DNABANDON=1 $Q"
row "inline, the log's answer is lost" clean "$P1 -DINLINE=1 -DNREPLY=1 $Q"
row "inline, a read of the log is stale" clean "$P1 -DINLINE=1 -DNSTALE=1 $Q"
row "inline, the driver's id waits for a marker" clean "$P1 -DINLINE=1 -DNENDING=1 $Q"
row "inline, deleted and put back, an older decision" tried "$P1 -DINLINE=1 -DOLD -DNDELETE=2 -DQUIETCHK"
row "inline, an older copy of the checkpoint" tried "$TWO -DNP=1 -DINLINE=1 -DNRESTORE=1 -DQUIETCHK"
I="$P1 -DINLINE=2"
row "M_BLINDRETRY" violation "$I -DNREPLY=1 -DM_BLINDRETRY" short
row "M_ROWSFIRST" violation "$I -DM_ROWSFIRST" short
row "inline: M_READFIRST" violation "$I -DM_READFIRST" short
row "inline: NO_CAS" violation "$I -DNO_CAS -DNABANDON=1" short
row "inline: M_REWRITE" violation "$I -DM_REWRITE" short
row "inline: NO_WRITER" violation "$I -DNO_WRITER -DNREPLY=1 $Q" short
row "inline: M_STALEEND" violation "$I -DNSTALE=1 -DM_STALEEND" short
row "inline: M_NOMEMBER NO_CAS NO_VOID" violation "$I -DM_NOMEMBER -DNO_CAS -DNO_VOID" short
row "inline: M_NOFINGER" violation "$ONE -DINLINE=1 -DOLD -DNONDET -DM_NOFINGER"

head_ "the driver's EndTxn arrives twice, late, or without an answer"
E="-DKEEP -DNLATE=1"
row "late, one batch" clean "$ONE -DNLATE=1 $Q"
row "late, an older decision" clean "$P1 -DOLD -DNLATE=1 $Q"
row "late, two batches" clean "$TWO -DNP=1 $E $Q"
row "late, inline, all" clean "$TWO -DNP=1 -DINLINE=2 $E $Q" short
row "late, inline, all, two partitions" tried "$TWO -DINLINE=2 $E $Q"
row "late, inline" tried "$TWO -DNP=1 -DINLINE=1 $E $Q"
row "late, inline, all, a transaction times out" tried "$TWO -DNP=1 -DINLINE=2 -DNTIMEOUT=1 $E $Q"
row "late, inline, all, commit() interrupted" tried "$P1 -DINLINE=2 -DNABANDON=1 $E $Q"
row "late twice, inline, all" tried "$TWO -DNP=1 -DINLINE=2 -DKEEP -DNLATE=2 $Q"
row "M_ONEEPOCH" violation "$TWO -DNP=1 $E -DM_ONEEPOCH" short
row "M_ONEEPOCH, two copies" violation "$TWO -DNP=1 -DINLINE=2 $E -DM_ONEEPOCH -DNOA1" short
row "M_ONEEPOCH, a part of a batch" violation "$TWO -DINLINE=2 $E -DM_ONEEPOCH -DNOA1" short

head_ "two faults more, one partition (they may be cut)"
FAULTS="NTIMEOUT NSESSION NABANDON NZTASK NTDIE NFAIL NHIDE NREPLY NSTALE NFORGET NDELETE NWITNESS"
set -- $FAULTS
while [ $# -gt 0 ]; do
  a=$1; for b in "$@"; do
    h=-DNOHUMAN; case "$a$b" in *NDELETE*|*NWITNESS*) h=;; esac
    if [ "$a" = "$b" ]; then row "$a twice" tried "$P1 -D$a=2 -DQUIETCHK $h" pairs
    else row "$a and $b" tried "$P1 -D$a=1 -D$b=1 -DQUIETCHK $h" pairs; fi
  done; shift
done

head_ "fair scheduling: the last run ends, and a done one leaves nothing open"
L="-DLIVE"
row "closed" clean "$P1 $L" live
row "closed: a task dies" clean "$P1 $L -DNTDIE=1" live
row "closed: a timeout" tried "$P1 $L -DNTIMEOUT=1" live
row "closed: the session ends" tried "$P1 $L -DNSESSION=1" live
row "closed: a list misses one" tried "$P1 $L -DNHIDE=1" live
row "closed: commit() interrupted" tried "$P1 $L -DNABANDON=1" live
row "ends: a late task attempt" tried "$P1 $L -DNZTASK=1" live
row "closed: a late task attempt, a known limit" violation "$P1 $L -DNZTASK=1" live
row "ends: NO_RELIST" violation "$P1 $L -DNHIDE=1 -DNO_RELIST" "live short"
row "ends: M_NOSWEEP" violation "$P1 $L -DM_NOSWEEP" "live short"
row "closed: M_NOMEMBER_T" violation "$P1 $L -DM_NOMEMBER_T" live

head_ "one rule taken back"
row "NO_PLANREAD" violation "$ONE -DNO_PLANREAD -DNABANDON=1 $Q" short
row "NO_PLANREAD NO_CAS" violation "$ONE -DNO_PLANREAD -DNO_CAS -DNABANDON=1 -DNOA1"
row "NO_CAS" violation "$ONE -DNO_CAS -DNABANDON=1" short
row "M_READFIRST" violation "$P1 -DM_READFIRST" short
row "M_STALEEND" violation "$P1 -DNSTALE=1 -DM_STALEEND" short
row "M_SHAREDKEY" violation "$P1 -DM_SHAREDKEY -DNOA1" short
row "NO_WRITER" violation "$P1 -DNO_WRITER -DNREPLY=1 $Q" short
row "M_HELD" violation "$P1 -DM_HELD -DKEEP -DNTDIE=1 $Q" short
row "NO_REOPEN" clean "$ONE -DNO_REOPEN $Q"
row "M_NOMEMBER" clean "$ONE -DM_NOMEMBER"
row "M_NOMEMBER NO_CAS NO_VOID" violation "$P1 -DM_NOMEMBER -DNO_CAS -DNO_VOID" short
row "M_NOMEMBER_T" clean "$ONE -DM_NOMEMBER_T"
row "M_NOMEMBER_T NO_RELIST" violation "$ONE -DM_NOMEMBER_T -DNO_RELIST"
row "M_ONEOFFSET" clean "$P1 -DHALF -DM_ONEOFFSET"
row "NO_WITNESS" violation "$P1 -DOLD -DNO_WITNESS" short
row "NO_WITNESS, a late task attempt" violation "$P1 -DNO_WITNESS -DNZTASK=1"
row "M_UNREADLOST" violation "$P1 -DOLD -DNWITNESS=1 -DM_UNREADLOST" short
row "M_UNREADOK" violation "$P1 -DOLD -DNWITNESS=1 -DM_UNREADOK" short
row "M_DOUBTANY, the same batch" violation "$P1 -DOLD -DNWITNESS=1 -DM_DOUBTANY=1" short
row "M_DOUBTANY, another stream" violation "$P1 -DOLD -DNWITNESS=1 -DNDELETE=1 -DM_DOUBTANY=2"
row "M_DOUBTSTOPS" violation "$TWO -DNP=1 $W -DM_DOUBTSTOPS $Q" short
row "M_SETTLEDBLIND" violation "$P1 -DOLD -DM_SETTLEDBLIND" short
row "M_SETTLEDKEPT" violation "$TWO -DNP=1 -DNTIMEOUT=1 -DM_SETTLEDKEPT" short
row "NO_SETTLEDBIT" violation "$TWO -DNP=1 $W -DNO_SETTLEDBIT $Q"
row "M_NOSETTLE" violation "$P1 -DM_NOSETTLE $Q" short
row "M_SETTLEDBATCH" violation "$P1 -DOLD -DM_SETTLEDBATCH -DNABANDON=1" short
row "NO_VOID" violation "$P1 -DNO_VOID -DNABANDON=1" short
row "M_VOIDFIRST" violation "$P1 -DM_VOIDFIRST" short
row "M_ABORTANYWAY" violation "$ONE -DM_ABORTANYWAY" short
row "NO_SWEEP" violation "$ONE -DNO_SWEEP" short
row "NO_SWEEP, two requests" violation "$ONE -DNO_SWEEP -DHALF -DNOA1"
row "NOVERIFY" violation "$P1 -DHALF -DNOVERIFY" short
row "M_NOSWEEP" violation "$P1 -DM_NOSWEEP" short
row "M_UNDBYID" violation "$P1 -DOLD -DM_UNDBYID" short
row "M_ABORTBLIND" violation "$P1 -DM_ABORTBLIND -DNABANDON=1" short
row "NO_REPLAN" violation "$ONE -DNTDIE=1 -DNO_REPLAN $Q" short
row "M_SEQONLY" violation "$ONE -DNTDIE=1 -DNFAIL=1 -DM_SEQONLY $Q" short
row "NO_RELIST" violation "$P1 -DNHIDE=1 -DNO_RELIST $Q" short
row "M_NOWAIT" violation "$P1 -DNHIDE=1 -DM_NOWAIT $Q" short
row "M_REJOIN" violation "$TWO -DNP=1 -DM_REJOIN" short
row "M_EXPIRED" violation "$P1 -DM_EXPIRED -DNSESSION=1 $Q" short
row "M_NOVOTE, deterministic" clean "$P1 -DM_NOVOTE -DNTIMEOUT=1"
row "M_NOVOTE" violation "$ONE -DM_NOVOTE -DNONDET -DNTIMEOUT=1 -DEARLYT $Q"
row "NO_SLOT NO_WITNESS, an empty batch" violation "-DR=2 -DNB=3 -DNP=1 -DNO_SLOT -DNO_WITNESS -DEMPTYB=1"
row "NO_SLOT, an empty batch" clean "-DR=2 -DNB=3 -DNP=1 -DNO_SLOT -DEMPTYB=1"
row "NO_WITNESS, an empty batch" clean "-DR=2 -DNB=3 -DNP=1 -DNO_WITNESS -DEMPTYB=1"
row "M_NOOLDER" violation "$TWO -DNP=1 -DNRESTORE=1 -DM_NOOLDER" short
row "M_REWRITE" violation "$P1 -DOLD -DM_REWRITE" short
row "M_NUMBER" violation "$P1 -DOLD -DNDELETE=1 -DM_NUMBER" short
row "M_NOEARLIER" violation "$P1 -DOLD -DNDELETE=2 -DM_NOEARLIER" short
row "M_LOSTGONE" violation "$P1 -DOLD -DNDELETE=1 -DM_LOSTGONE" short
row "M_NOTALLY" violation "$P1 -DOLD -DGROW -DM_NOTALLY" short
row "M_NOFINGER" violation "$ONE -DOLD -DNONDET -DM_NOFINGER" short
MODEL=offsets.pml
head_ "the source's offsets in the decision; a run may crash at any step"
D="-DR=3 -DNDELETE=1"; T="-DNP=2 -DK=1 -DTOPICS"
row "offsets" clean "-DR=3"
row "offsets, batches without rows, the option off and on" tried "-DR=3 -DFILTER -DNOFF=1"
row "offsets, the checkpoint is deleted" tried "$D" short
row "offsets, deleted, transactions expire" tried "$D -DNEXPIRE=2 -DK=2"
row "offsets, deleted, a start anywhere" tried "$D -DANYSTART -DK=2"
row "offsets, deleted, two drivers" tried "$D -DNZOMBIE=1 -DK=2"
row "offsets, deleted, the option off and on" tried "$D -DNOFF=1 -DK=2"
row "offsets, deleted, the group is reset" tried "$D -DNFOREIGN=1 -DK=2"
row "offsets, deleted, the group is reset, a command" tried "$D -DNFOREIGN=1 -DNRULE=1 -DK=2"
row "offsets, deleted, transactions expire, a command" tried "$D -DNEXPIRE=1 -DNRULE=1 -DK=2"
row "offsets, deleted, a stateful query" tried "$D -DSTATEFUL"
row "offsets, deleted, a new partition" tried "$D -DNP=2 -DK=1"
row "offsets, deleted, a new topic" tried "$D $T"
row "offsets, deleted twice" tried "-DR=3 -DNDELETE=2 -DK=2"
row "offsets, an old copy of the checkpoint" tried "-DR=3 -DNRESTORE=1 -DK=2"
row "offsets, deleted, an old copy, one driver: a known limit" violation "$D -DNRESTORE=1 -DNEXPIRE=2 -DK=2"
row "offsets, half of the checkpoint" tried "-DR=3 -DNHALF=1"
row "offsets, half of the checkpoint, batches without rows" tried "-DR=3 -DNHALF=1 -DFILTER"
row "offsets, a group that another program has used" clean "-DGROUPED"
row "offsets, a checkpoint of Spark's own sink" clean "-DOWNSINK"
row "offsets, two drivers, an old copy: a known limit" violation "-DNZOMBIE=1 -DNRESTORE=1"
row "reached: the checkpoint is deleted" violation "-DNDELETE=1 -DREACH"
row "reached: deleted, transactions expire" violation "-DNDELETE=1 -DNEXPIRE=2 -DREACH"
row "reached: half of the checkpoint" violation "-DNHALF=1 -DREACH"
row "reached: a reset, --use record" violation "-DNDELETE=1 -DNFOREIGN=1 -DNRULE=1 -DREACH"
row "M_GROUPAPART" violation "-DM_GROUPAPART" short
row "M_TRUSTEND" violation "-DR=3 -DNHALF=1 -DM_TRUSTEND"
row "M_GAP" violation "-DR=3 -DFILTER -DNOFF=1 -DM_GAP"
row "M_NOMETA" violation "-DNDELETE=1 -DNZOMBIE=1 -DM_NOMETA"
row "M_METAFIRST" violation "-DNDELETE=1 -DNZOMBIE=1 -DM_METAFIRST"
row "M_REPLAYEND" violation "-DNHALF=1 -DFILTER -DM_REPLAYEND"
row "M_READDED" violation "-DR=3 $T -DM_READDED"
row "M_NOCARRY" violation "-DR=3 $T -DM_NOCARRY"
row "M_STARTLACKS" violation "$D -DNP=2 -DK=1 -DTOPICS -DNEXPIRE=1 -DM_STARTLACKS"
row "M_NEWPARTITION" violation "-DNDELETE=1 -DNP=2 -DK=2 -DANYSTART -DM_NEWPARTITION"
row "M_EARLIER" violation "-DNDELETE=1 -DANYSTART -DM_EARLIER"
row "M_LATER" violation "-DNDELETE=1 -DANYSTART -DM_LATER"
row "M_UNREADABLE" violation "-DNDELETE=1 -DNHALF=1 -DANYSTART -DM_UNREADABLE"
row "M_PARTLY" violation "-DNDELETE=1 -DNEXPIRE=1 -DM_PARTLY"
row "M_ENDALWAYS" violation "-DNDELETE=1 -DNEXPIRE=1 -DM_ENDALWAYS"
row "NO_DROP" violation "-DNDELETE=1 -DNEXPIRE=1 -DNO_DROP"
row "M_DROPBLIND" violation "-DNDELETE=1 -DNEXPIRE=1 -DNFOREIGN=1 -DK=2 -DANYSTART -DM_DROPBLIND"
row "M_STATEFUL" violation "-DNDELETE=1 -DSTATEFUL -DM_STATEFUL"
row "NO_STALE" violation "$D -DNOFF=1 -DNO_STALE"
row "M_NOPOSITION" violation "-DNDELETE=1 -DNOFF=1 -DM_NOPOSITION"
row "M_GROUP" violation "-DNDELETE=1 -DNFOREIGN=1 -DM_GROUP"
row "M_GROUPFIRST" violation "-DGROUPED -DM_GROUPFIRST"
row "M_AHEAD" violation "-DOWNSINK -DM_AHEAD"
MODEL=writes.pml
head_ "single writes by number; a run may crash or live on as a zombie at any step"
row "writes" clean "" short
row "writes, a transaction times out" clean "-DNEXPIRE=1"
row "writes, transactions time out" clean "-DNEXPIRE=2"
row "writes, three numbers" clean "-DN=3 -DKEEP=2"
row "reached: a number is forgotten" violation "-DREACH"
row "M_SKIPFIRST" violation "-DM_SKIPFIRST" short
row "M_HIGHEST" violation "-DM_HIGHEST" short
row "M_FORGOTTEN" violation "-DM_FORGOTTEN" short
row "M_NOCOMPARE" violation "-DM_NOCOMPARE" short
row "M_LOSTIGNORED" violation "-DM_LOSTIGNORED -DNEXPIRE=1"
MODEL=claims.pml
head_ "two identities of one query that take a group, or a stream, at once"
C="-DNCOPY=1"
row "claims" clean "" short
row "claims, three runs" clean "-DR=3"
row "claims, a transaction times out" clean "-DNEXPIRE=1"
row "claims, a directory is deleted" clean "-DNDELETE=1"
row "claims, a directory is copied" clean "$C"
row "claims, a directory is copied, three runs" clean "-DR=3 $C"
row "claims, a stream is copied, without a group" clean "-DR=3 $C -DNOGROUP"
row "claims, the old place is used again" clean "-DR=3 $C -DNDELETE=1"
row "claims in each other's partitions: a known limit" violation "-DCROSSED"
row "reached: one of two identities is stopped" violation "-DREACH"
row "M_GROUPCLAIM" violation "-DM_GROUPCLAIM" short
row "M_STREAMCLAIM" violation "$C -DNOGROUP -DM_STREAMCLAIM" short
row "M_CLAIMBEFORE" violation "-DM_CLAIMBEFORE"
row "M_CLAIMNOWAIT" violation "-DM_CLAIMNOWAIT"
row "M_NOLOOK" violation "-DM_NOLOOK"
row "M_NORETIRE" violation "$C -DM_NORETIRE"
row "M_RETIREBLIND" violation "$C -DM_RETIREBLIND"
row "M_LEFTEQUAL" violation "-DR=3 $C -DNDELETE=1 -DM_LEFTEQUAL"
row "M_FOLLOWED" violation "-DR=3 $C -DNDELETE=1 -DM_FOLLOWED"
MODEL=leaderless.pml
head_ "a transaction ends while its partition has no leader (KAFKA-20734)"
V="-DINLINE -DNB=1"
row "leaderless" clean "-DNDOWN=2" short
row "leaderless, an attempt fails" clean "-DNFAIL=1 -DNDOWN=2"
row "leaderless, the leader goes at an abort" clean "-DNRACE=1 -DNFAIL=1"
row "leaderless, it times out" clean "-DNTIMEOUT=1 -DNFAIL=1 -DNRACE=1 -DNDOWN=2"
row "leaderless, inline" clean "$V -DNFAIL=1 -DNDOWN=2" short
row "leaderless, inline, the log too" clean "$V -DNFAIL=1 -DNTIMEOUT=1 -DNLOG=1"
row "leaderless, inline, two batches: a known limit" violation "-DINLINE"
row "reached: something has hung" violation "-DREACH -DNFAIL=1"
row "M_LEADER" violation "-DM_LEADER" short
row "M_LOOK" violation "-DNTIMEOUT=1 -DM_LOOK"
row "M_UNSEEN" violation "-DNTIMEOUT=1 -DM_UNSEEN"
row "M_LISTBLIND" violation "-DNTIMEOUT=1 -DM_LISTBLIND" short
row "M_LOOKONCE" violation "-DNRACE=1 -DM_LOOKONCE"
row "M_ATTEMPT" violation "-DNFAIL=1 -DM_ATTEMPT" short
row "M_REPEATED" violation "$V -DNFAIL=1 -DM_REPEATED" short
row "M_LOGINIT" violation "$V -DNLOG=1 -DNDOWN=0 -DM_LOGINIT" short
MODEL=late.pml
head_ "each request of a transaction may arrive twice, or late"
row "requests" clean "-DNLATE=2 -DNABORT=2 -DNB=3" short
row "requests, the group does not ask" clean "-DNLATE=2 -DNABORT=2 -DNB=3 -DNOASK"
row "requests, one epoch, a late AddPartitionsToTxn" clean "-DM_EPOCH -DKIND=ADD_PARTITION"
row "requests, one epoch, a late Produce" clean "-DM_EPOCH -DKIND=PRODUCE"
row "requests, one epoch, a late AddOffsetsToTxn" clean "-DM_EPOCH -DKIND=ADD_OFFSETS"
row "reached: a late request is refused" violation "-DREACH"
row "M_EPOCH, a late EndTxn" violation "-DM_EPOCH -DKIND=END" short
row "M_EPOCH, a late TxnOffsetCommit" violation "-DM_EPOCH -DKIND=COMMIT_OFFSET" short
row "M_ASK" violation "-DNABORT=1 -DM_ASK" short
wait; cat "$B"/*.line; ! grep -qE 'UNEXPECTED|BUILD FAILED' "$B"/*.line
