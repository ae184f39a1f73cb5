// Stands for a CUDA runtime and says which one it is.
const char* cuslice_test_runtime(void) { return CUSLICE_STUB_RUNTIME; }
