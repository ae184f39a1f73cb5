// SPDX-License-Identifier: Apache-2.0
// The names by which a program comes to a GPU.
#pragma once

#include "stub/text.h"

/// Significance of a library for the limits: its own, or that of a library that it needs. The larger one counts. One
/// that can't be read may lead to the driver.
enum leads { leads_nowhere, leads_to_gpus, leads_unknown, leads_to_driver };

/// By the last component of a library's name alone.
static inline enum leads leads_by_name(const char* name) {
    const char* const file = last_component(name);
    if (equal(file, "libcuda.so") || begins_with(file, "libcuda.so."))
        return leads_to_driver;
    const bool gpus =
        equal(file, "libnvidia-ml.so") || begins_with(file, "libnvidia-ml.so.") || begins_with(file, "libcudart.so");
    return gpus ? leads_to_gpus : leads_nowhere;
}
