// SPDX-License-Identifier: Apache-2.0
// A library that asks for an export table. Built under several names: the driver goes by them.

extern "C" __attribute__((visibility("default"))) int ask_for_table(int (*function)(const void**, const void*),
                                                                    const void** table) {
    const char id[16] = {};
    volatile int result = function(table, id);  // volatile: the call returns here, and isn't a jump
    return result;
}
