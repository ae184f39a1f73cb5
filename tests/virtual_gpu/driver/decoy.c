// SPDX-License-Identifier: Apache-2.0
/* A library of the driver's name: the real one, or with the mark by which cuslice recognises itself. */
int cuInit(unsigned flags) { return (int)flags; }
#ifdef DECOY_MARKED
const char* cuslice_marker(void) { return "cuslice"; }
#endif
#ifdef DECOY_VERSIONED
/* Two versions of one function, of which the second is the default; one that has no default; one that only the first
   call decides on; and one that is not the library's own. */
int answer_old(void) { return 1; }
int answer_new(void) { return 2; }
int old_only(void) { return 3; }
__asm__(".symver answer_old, answer@DECOY_1");
__asm__(".symver answer_new, answer@@DECOY_2");
__asm__(".symver old_only, withdrawn@DECOY_1");
static int chosen_here(void) { return 4; }
static int (*choose(void))(void) { return chosen_here; }
int chosen(void) __attribute__((ifunc("choose")));
extern int puts(const char*);
int (*not_ours(void))(const char*) { return puts; }
#endif
