// SPDX-License-Identifier: Apache-2.0
// Towers: a batch is cut into as many shards as there are GPUs, each GPU has a copy of the variables and computes the
// gradient of its shard, and the gradients are averaged on the CPU. What the two programs beside this have in common.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace towers {

// Names the project, for those who look into an installed program.
[[gnu::used]] inline constexpr char kOrigin[] = "a sample of cuslice's";

// y = 3 x + 2, with noise.
struct Batch {
    std::vector<float> x, y;
};
inline Batch make_batch(size_t examples) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> value(-1, 1);
    std::normal_distribution<float> noise(0, 0.05f);
    Batch batch;
    for (size_t i = 0; i < examples; i++) {
        batch.x.push_back(value(random));
        batch.y.push_back(3 * batch.x.back() + 2 + noise(random));
    }
    return batch;
}

struct Variables {
    float weight = 0, bias = 0;
};

// Sums of a tower over its shard. `ran` is for a GPU whose kernels aren't run, such as a fake one: the kernel of
// every example adds one to it.
struct Sums {
    float weight = 0, bias = 0, squares = 0, ran = 0;
};

// The shard of one of `towers`: the last may be smaller.
inline size_t shard_begin(size_t examples, int towers, int tower) {
    return examples * static_cast<size_t>(tower) / static_cast<size_t>(towers);
}

// One step down the average of what the towers found. False if no kernel has run.
inline bool step(const std::vector<Sums>& of_towers, size_t examples, int number, Variables* variables) {
    Sums all;
    for (const Sums& sums : of_towers) {
        all.weight += sums.weight;
        all.bias += sums.bias;
        all.squares += sums.squares;
        all.ran += sums.ran;
    }
    if (all.ran == 0)
        return false;
    const float count = static_cast<float>(examples), rate = 0.5f;
    if (number % 10 == 0)
        std::printf("step %d: loss %.4f, y = %.3f x + %.3f\n", number, all.squares / count, variables->weight,
                    variables->bias);
    variables->weight -= rate * all.weight / count;
    variables->bias -= rate * all.bias / count;
    return true;
}

inline int ended(bool ran, const Variables& variables) {
    if (ran)
        std::printf("y = %.2f x + %.2f\n", variables.weight, variables.bias);
    else
        std::puts("The kernels were not run, as on a fake GPU: the variables stay as they were.");
    return 0;
}

constexpr size_t kExamples = 3 << 12;
constexpr int kSteps = 50;
constexpr unsigned kThreads = 256;

// sums[0..3] += {error x, error, error², 1} of one example a thread.
constexpr char kKernel[] = R"(
.version 7.0
.target sm_50
.address_size 64

.visible .entry gradient(
    .param .u64 x, .param .u64 y, .param .u64 variables, .param .u64 sums, .param .u32 count)
{
    .reg .pred %done;
    .reg .f32 %f<9>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<8>;

    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u64 %rd3, [variables];
    ld.param.u64 %rd4, [sums];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r2, %r3, %r2, %r4;
    setp.ge.u32 %done, %r2, %r1;
    @%done bra END;
    mul.wide.u32 %rd5, %r2, 4;
    add.s64 %rd6, %rd1, %rd5;
    add.s64 %rd7, %rd2, %rd5;
    ld.global.f32 %f1, [%rd6];
    ld.global.f32 %f2, [%rd7];
    ld.global.f32 %f3, [%rd3];
    ld.global.f32 %f4, [%rd3+4];
    fma.rn.f32 %f5, %f3, %f1, %f4;
    sub.f32 %f5, %f5, %f2;
    mul.f32 %f6, %f5, %f1;
    mul.f32 %f7, %f5, %f5;
    mov.f32 %f8, 0f3F800000;
    red.global.add.f32 [%rd4], %f6;
    red.global.add.f32 [%rd4+4], %f5;
    red.global.add.f32 [%rd4+8], %f7;
    red.global.add.f32 [%rd4+12], %f8;
END:
    ret;
}
)";

}  // namespace towers
