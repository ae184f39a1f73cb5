/* A library of the driver's name: the real one, or with the mark by which cuslice recognises itself. */
int cuInit(unsigned flags) { return (int)flags; }
#ifdef DECOY_MARKED
const char* cuslice_marker(void) { return "cuslice"; }
#endif
