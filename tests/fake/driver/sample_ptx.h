// SPDX-License-Identifier: Apache-2.0
#pragma once
// A module as a compiler writes one: two kernels, four variables.

namespace fake_test {

inline const char* const sample_ptx = R"(
// a comment with .entry wrong( in it
.version 8.0
.target sm_75
.address_size 64

.global .align 4 .u32 counter = 7;
.const .align 4 .b8 table[20] = {0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64, 0, 0, 160, 64};
.global .align 8 .b8 zeros[80];
.global .attribute(.managed) .align 4 .u32 mg = 3;
.extern .global .align 4 .u32 elsewhere;

.func (.param .b32 result) helper(.param .b32 x)
{
    ret;
}

.visible .entry add(
    .param .u64 add_param_0,
    .param .u64 .ptr .global .align 4 add_param_1,
    .param .u32 add_param_2,
    .param .align 8 .b8 add_param_3[24],
    .param .u8 add_param_4
)
{
    .reg .b32 %r<13>;
    .shared .align 4 .b8 tile[256];
    { ret; }
}

.visible .entry bounded()
.maxntid 64, 2, 1
{
    ret;
}
)";

}  // namespace fake_test
