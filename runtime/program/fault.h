/* fault.h: mechanisms that the simulator leaves out on purpose, to see that it notices.
 *
 * A test that finds nothing has to show that it would have found something. Whoever writes a mechanism puts the number of the fault that
 * its absence would be beside it: `if (serial <= last && !FAULT(1))`. In what users get FAULT(n) is 0 and leaves no trace; in the library
 * that tests/simulator links (-DTFC_SIMULATE) one of them at a time can be planted.
 */
#ifndef TFC_RUNTIME_PROGRAM_FAULT_H
#define TFC_RUNTIME_PROGRAM_FAULT_H

#ifdef TFC_SIMULATE
/* The simulator's; 0: none. Set before the first task starts, read by any thread. */
extern int planted_fault;
#define FAULT(number) (planted_fault == (number))
#else
#define FAULT(number) 0
#endif

#endif
