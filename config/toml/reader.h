// SPDX-License-Identifier: Apache-2.0
// The boundary between the settings and the TOML parser, in C: toml++ needs libstdc++, which the preloaded library must
// not bring into its host, so it sits in a module of its own (libcuslice-config.so), opened only when there is a file
// to read.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuslice_toml_kind {
    CUSLICE_TOML_TABLE,
    CUSLICE_TOML_STRING,
    CUSLICE_TOML_INTEGER,
    CUSLICE_TOML_FLOAT,
    CUSLICE_TOML_BOOLEAN,
    CUSLICE_TOML_ARRAY,
    CUSLICE_TOML_DATE,
    /// An array of nothing but tables, each of which follows as an item of its own, with the same path.
    CUSLICE_TOML_TABLES
};

/// One table or one value of a file.
struct cuslice_toml_item {
    /// The names on the way to it, outermost first: gpu, 0, limit. Ended by NULs.
    const char* const* path;
    size_t depth;
    enum cuslice_toml_kind kind;
    /// A string's content; for any other value its own text in the file, up to the end of the line. Not ended by a NUL.
    const char* value;
    size_t value_size;
    /// The strings of an array that has nothing else, joined by plus signs. NULL for any other value.
    const char* joined;
    size_t joined_size;
    /// The strings themselves, each ended by a NUL.
    const char* const* strings;
    size_t string_count;
    /// Not 0: one table of an array of tables.
    int element;
    /// Where the key (the table's header) begins, from 1.
    unsigned line;
    unsigned column;
};

/// Where and why a text is not TOML.
struct cuslice_toml_failure {
    unsigned line;
    unsigned column;
    char reason[256];
};

/// Returns 0 to end the reading.
typedef int cuslice_toml_callback(void* context, const struct cuslice_toml_item* item);

/// Reads a TOML text and gives each table and each value to `callback`, in the order of the file. Returns 0, or 1 if
/// the text is not TOML, with `failure` filled and the callback not called at all. Not stopped by an item's meaning:
/// that is the caller's to judge. Safe from any thread; the pointers are valid during the callback.
typedef int cuslice_toml_parse_function(const char* text, size_t size, cuslice_toml_callback* callback, void* context,
                                        struct cuslice_toml_failure* failure);

/// The module's only exported function.
__attribute__((visibility("default"))) int cuslice_toml_parse(const char* text, size_t size,
                                                              cuslice_toml_callback* callback, void* context,
                                                              struct cuslice_toml_failure* failure);

#ifdef __cplusplus
}
#endif
