"""What the live view says about itself when it is asked."""

__all__ = ["HELP"]

HELP = """\
Keys
  up, down    move the cursor; also j, k, page up, page down, home, end
  tab         from the processes to the pairs, and back
  enter       on a process: go to its pairs; on a pair: show its two stacks
  escape      go back
  s, S        sort by the next column; turn the order round
  r, space    show or hide the roles of all processes; of this one
  /           show only processes with these words in name, pid or a role
  p           pause what is shown; tracing continues
  q, ctrl+c   end

Upper table: processes, in the time between two snapshots
  lost        time that threads lost waiting for the GIL, in ms a second:
              1000 is one thread that waits all the time
  convoy      part of it that was lost in convoys: by threads that came back
              from a blocking call and queued for a switch interval or more,
              or for 5 ms on PyPy and CPython 2.7, which have none
  threads     how many threads wait now
  held        how much of the time the GIL was held; added up where there
              are several. Between windows of full mode it is estimated,
              within ten points or so for one second. Of a role it is known
              inside windows only
  longest     the wait, and the hold, in flight that has lasted longest;
              the hold shows as long as a window of full mode is open
  cost        what tracing costs the process in the last minute, of the CPU
              time that it uses itself, by gilscope's own estimate
An empty cell: not known, or there is none.
Red: a tenth of a thread or more is lost, most of it in convoys.

A process that runs transactions (PyPy-STM) stands below those with a GIL,
and its threads, by name, below it. All of its figures are of the windows
that the overhead budget allows.
  lost        run time of tries that were aborted, and pauses
  commits/s   transactions that took effect; aborted: how many tries did not
  ≈           no window was open since: figures of the last interval with one

With --locks a Python without a GIL stands there too, with its threads by name.
  lost        waits for locks and for stops of the world; nothing that is idle
  waits/s     how often its threads waited; world stopped: for how much of the
              time all threads stood still

Lower part: who keeps whom waiting in the selected process
  kept by     whose code had the GIL while others waited, of the time lost
  held by     whose code had it at all since the process is traced, by samples
              of the holder's stack, give or take so many points
  to change   what a change of the program would bring, estimated from all
              that was seen of it; the page of serve says what that assumes
  routes      what requests waited in the interval and for whose code, where a
              tracer publishes which request each thread serves
  locks       what its threads have lost to locks, with --locks, and where
  ≈           an estimate: by samples, or by the stacks of some of the waits
  lost        in the time between two snapshots; total: since it is traced
  kind        GIL_CONVOY, GIL_BLOCKING_CALL (came back from a blocking call,
              shorter), GIL_PREEMPTION (was preempted), GIL_UNKNOWN
  first line  where the thread stood that had to wait
  held by     where the thread stood that had the GIL meanwhile
Of one with transactions: what these have lost lately and since it is traced,
what they waited for, what made them inevitable, and what is not seen.
Of one without a GIL: what its threads wait for, where, and who had it and
released it.
"""
