// SPDX-License-Identifier: Apache-2.0
/// Values of settings for the plugin, read by the library's own rules (config/value.h).
#pragma once
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cuslice_value {
    uint64_t number;  // bytes, or parts of cuslice_whole; 0 if it was refused
    char why[512];    // of a refusal, as it may be shown after printable() alone: it can hold what a user wrote
};

extern const uint64_t cuslice_whole;

/// A size in bytes above 0, and a fraction above 0 and at most 1. False, with the reason, for anything else. Pure.
bool cuslice_read_size(const char* text, struct cuslice_value* value);
bool cuslice_read_fraction(const char* text, struct cuslice_value* value);
/// True if the library takes it as CUSLICE_SPLIT for every GPU. Its number means nothing. Pure. None of the three takes
/// `+context`, as a job's slice counts its contexts.
bool cuslice_read_split(const char* text, struct cuslice_value* value);

#ifdef __cplusplus
}
#endif
