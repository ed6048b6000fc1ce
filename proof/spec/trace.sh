#!/bin/bash
# trace.sh NAME "flags" [seconds]: the shortest counterexample (breadth first) as a list of steps.
# MODEL=offsets.pml for the rows of that model, and so on.
cd "$(dirname "$0")" || exit 2
H=$PWD; MODEL=${MODEL:-eos.pml}; d=$H/build/$1-bfs; rm -rf "$d"; mkdir -p "$d"; cd "$d" || exit 2
# shellcheck disable=SC2086  # the flags are words
spin $2 -a "$H/$MODEL" > spin.out 2>&1 && gcc -O2 -DSAFETY -DBFS -DBFS_DISK_X -DVECTORSZ=2048 -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c 2>gcc.out || { echo "BUILD FAILED: see $d"; exit 2; }
timeout "${3:-100}" ./pan -E -w24 > pan.out 2>&1
grep -m1 "pan:1" pan.out | cut -c1-90; grep -m1 "states, stored" pan.out
T=$(ls ./*.trail 2>/dev/null | head -1)
# shellcheck disable=SC2086
[ -n "$T" ] && spin $2 -t -k "$T" "$H/$MODEL" 2>/dev/null | grep -E "MSC|assert" | sed 's/^ *//; s/MSC: //; s/^pid1 /run0 /; s/^pid2 /commit0 /; s/^pid3 /run1 /; s/^pid4 /commit1 /'
exit 0
