// SPDX-License-Identifier: Apache-2.0
/* The system's unwinder, for a fake library that was linked with another one.
 *
 * When a thread is cancelled, the C library unwinds it with libgcc_s, which asks each frame's C++ library what is to be
 * cleaned up there; and that asks back. In a release (scripts/cmake/zig.cmake) the C++ library has LLVM's unwinder
 * linked in, which takes libgcc_s's description of a frame for its own and crashes. With these functions everything of
 * one process is unwound by libgcc_s, as in other builds. It is opened at the first exception or cancellation; who
 * cancels has it loaded by then. */
#include <dlfcn.h>
#include <stdlib.h>
#include <unwind.h>

static void* function(void** place, const char* name) {
    void* found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    void* const library = dlopen("libgcc_s.so.1", RTLD_LAZY);
    found = library ? dlsym(library, name) : NULL;
    /* There is no way on from an exception without it. */
    if (!found)
        abort();
    __atomic_store_n(place, found, __ATOMIC_RELEASE);
    return found;
}

/* Of functions that return nothing the macro returns what they return. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpedantic"
#define CUSLICE_UNWIND(result, name, parameters, arguments)              \
    result name parameters {                                             \
        static void* place;                                              \
        return ((result(*) parameters)function(&place, #name))arguments; \
    }

CUSLICE_UNWIND(_Unwind_Reason_Code, _Unwind_RaiseException, (struct _Unwind_Exception * exception), (exception))
CUSLICE_UNWIND(_Unwind_Reason_Code, _Unwind_Resume_or_Rethrow, (struct _Unwind_Exception * exception), (exception))
CUSLICE_UNWIND(_Unwind_Reason_Code, _Unwind_ForcedUnwind,
               (struct _Unwind_Exception * exception, _Unwind_Stop_Fn stop, void* data), (exception, stop, data))
CUSLICE_UNWIND(void, _Unwind_DeleteException, (struct _Unwind_Exception * exception), (exception))
CUSLICE_UNWIND(_Unwind_Word, _Unwind_GetGR, (struct _Unwind_Context * context, int number), (context, number))
CUSLICE_UNWIND(void, _Unwind_SetGR, (struct _Unwind_Context * context, int number, _Unwind_Word value),
               (context, number, value))
CUSLICE_UNWIND(_Unwind_Word, _Unwind_GetIP, (struct _Unwind_Context * context), (context))
CUSLICE_UNWIND(_Unwind_Word, _Unwind_GetIPInfo, (struct _Unwind_Context * context, int* before), (context, before))
CUSLICE_UNWIND(void, _Unwind_SetIP, (struct _Unwind_Context * context, _Unwind_Word value), (context, value))
CUSLICE_UNWIND(void*, _Unwind_GetLanguageSpecificData, (struct _Unwind_Context * context), (context))
CUSLICE_UNWIND(_Unwind_Ptr, _Unwind_GetRegionStart, (struct _Unwind_Context * context), (context))
CUSLICE_UNWIND(_Unwind_Word, _Unwind_GetCFA, (struct _Unwind_Context * context), (context))
CUSLICE_UNWIND(_Unwind_Reason_Code, _Unwind_Backtrace, (_Unwind_Trace_Fn trace, void* data), (trace, data))

#pragma clang diagnostic pop

/* Declared as never to return. */
void _Unwind_Resume(struct _Unwind_Exception* exception) {
    static void* place;
    ((void (*)(struct _Unwind_Exception*))function(&place, "_Unwind_Resume"))(exception);
    abort();
}
