// SPDX-License-Identifier: Apache-2.0
#pragma once
// A fat binary that can't be looked into, made here as the tools write them.

namespace fake_test {

/// A container with one compressed PTX for one capability. Its code is none: only the beginning of Zstandard's form.
struct PackedImage {
    unsigned magic = 0xba55ed50;
    unsigned short version = 1, header_size = 16;
    unsigned long long size = 64 + 16;
    unsigned short kind = 1, attributes = 0x101;
    unsigned entry_header = 64;
    unsigned long long entry_size = 16;
    unsigned compressed_size = 16, reserved = 0;
    unsigned short minor = 0, major = 9;
    unsigned capability = 50, name_offset = 0, name_size = 0;
    unsigned long long flags = 0x8011, reserved2 = 0, uncompressed = 100;
    char code[16] = "\x28\xb5\x2f\xfd";
};

}  // namespace fake_test
