// SPDX-License-Identifier: Apache-2.0
// Configurations that must be refused, each with its whole line on stderr. %CONFIG%, %CWD%, %USER% and %SYSTEM% stand
// for the paths of the file named by --config, ./cuslice.toml, the user's and the system's file.
#pragma once

namespace cuslice::tests {

enum class Where { option, variable, config_file, current_folder, user_file, system_file };

struct Malformed {
    Where where;
    /// An option with its value ("--limit=1024"), a variable with its value ("CUSLICE_LIMIT=1024"), or the text of a
    /// file.
    const char* text;
    /// Without "cuslice: " and the newline.
    const char* message;
    int exit_code = 78;
};

#define UNITS "use KiB, MiB, GiB or TiB (Ki and K are the same as KiB, and so on; KB, MB, GB, TB are powers of 1000)"
#define FRACTION_FORM "a fraction is a number above 0 and at most 1, as 0.4, or a percentage, as 40%"
#define PERCENT_FORM "a whole percent from 1% to 100% is needed, as 30% or 0.3"
#define GPU_FORM "use its index (0), the start of its UUID (GPU-5f), its PCI id (0000:81:00.0) or * for every GPU"
#define GPUS_FORM                                                                                                   \
    "use its index (0, or 0-2 for three), the start of its UUID (GPU-5f) or its PCI id (0000:81:00.0), divided by " \
    "commas; or any for one that has room, all, or none"
#define TOO_LARGE "more bytes than 64 bits can count: at most 16777215TiB"
#define TOO_MUCH "more than the whole GPU: cuslice does not extend a GPU into host memory; at most "
#define LOG_FORM "a level is needed: warn, info or debug, with :FILE after it to write there, as info:/tmp/slice.log"
#define HAMI_FORM "HAMi takes a whole number of bytes, or of k, m or g, as 1g or 1024m"
#define MPS_FORM "MPS takes a GPU and a whole number of M or G, as 0=1G,1=512M"
#define TABLES "no such table; there are [memory], [gpu.X], [ceiling] and [ceiling.gpu.X]"
#define WHICH_GPU "no GPU is named: a plus joins the partitions of one GPU, as 0=1GiB+2GiB; *=SIZE is for every other"
#define NO_SPLIT "empty: a number of equal partitions is needed, as 4, or sizes, as 1GiB+2GiB or 1GiB+rest"
#define NO_PARTS "0 partitions leave no GPU: a number from 1, which leaves it whole, to 64"
#define MANY_PARTS "partitions? at most 64; if a size is meant, it needs its unit, as "
#define EMPTY_PART "an empty partition: a size is needed on both sides of a plus, as 1GiB+rest"
#define PART_FRACTION \
    "is a fraction: a partition is a size, as 1GiB, or the rest; a number alone, as 4, is so many equal partitions"
#define ALL_OR_NONE "either each partition has a place in the order, as in 1GiB@1+2GiB@0, or none has"
#define ALL_NUMBERED "either each partition has a number of its own, as in 1GiB#2+2GiB#5, or none has"
#define NO_NUMBER "a number from 0 to 63 is needed after the #, of which the partition's identity is made, as rest#3"
#define NO_PLACE "a number is needed after the @, the partition's place in the order, as 1GiB@1+2GiB@0"
#define NO_PRIORITY "a whole number is needed after the colon, the priority of the partition's streams, as 1GiB:-1+rest"
#define FAR_PRIORITY "a priority is a whole number from -32 to 32; most GPUs have priorities from 0 to -5"
#define GPU_TABLE "a table is needed for each GPU, as [gpu.0] or [gpu.\"GPU-5f\"]"
#define WAIT_FORM "yes, no, or the longest time to wait: 500ms, 90s, 10m, 2h"
#define NO_GROUP "it needs a group, as --group NAME; for this program alone use --limit"
#define POINT "the decimal mark is a point: did you mean "
#define EQUALS "a GPU and its value are joined by an equals sign: did you mean "
#define NOT_OURS "not as this version of cuslice run writes it"

inline constexpr Malformed kMalformed[] = {
    // Sizes.
    {Where::option, "--limit=1024", "--limit: 1024: 1024 bytes? did you mean 1024MiB"},
    {Where::option, "--limit=1.5", "--limit: 1.5: 1.5 bytes? did you mean 1.5GiB"},
    {Where::option, "--limit=0", "--limit: 0: a limit of 0 leaves no memory: more than 0"},
    {Where::option, "--limit=0GiB", "--limit: 0GiB: a limit of 0 leaves no memory: more than 0"},
    {Where::option, "--limit=", "--limit: \"\": empty: a size is needed, as 4GiB"},
    {Where::option, "--limit=-4GiB", "--limit: -4GiB: a size is not negative: more than 0, as 4GiB"},
    {Where::option, "--limit=+4GiB", "--limit: +4GiB: not a size: a number and its unit are needed, as 4GiB"},
    {Where::option, "--limit=4 GiB", "--limit: 4 GiB: a size has no spaces in it, as 4GiB"},
    {Where::option, "--limit= 4GiB", "--limit:  4GiB: a size has no spaces in it, as 4GiB"},
    {Where::option, "--limit=4PiB", "--limit: 4PiB: 'PiB' is not a unit of size: " UNITS},
    {Where::option, "--limit=1024B", "--limit: 1024B: 'B' is not a unit of size: " UNITS},
    {Where::option, "--limit=4GiBs", "--limit: 4GiBs: 'GiBs' is not a unit of size: " UNITS},
    {Where::option, "--limit=40%", "--limit: 40%: a share of the GPU is a fraction: did you mean --fraction 40%"},
    {Where::option, "--limit=GiB", "--limit: GiB: not a size: a number and its unit are needed, as 4GiB"},
    {Where::option, "--limit=lots", "--limit: lots: not a size: a number and its unit are needed, as 4GiB"},
    {Where::option, "--limit=.GiB", "--limit: .GiB: not a size: a number and its unit are needed, as 4GiB"},
    {Where::option, "--limit=.5", "--limit: .5: .5 bytes? did you mean .5GiB, or --fraction .5"},
    {Where::option, "--limit=4Gb ", "--limit: 4Gb : a size has no spaces in it, as 4GiB"},
    {Where::option, "--limit=\u202e4GiB",
     "--limit: \\xe2\\x80\\xae4GiB: not a size: a number and its unit are needed, as 4GiB"},
    {Where::option, "--limit=1.GiB", "--limit: 1.GiB: a digit is needed after the point, as 1.5GiB"},
    {Where::option, "--limit=1.5.5GiB", "--limit: 1.5.5GiB: '.5GiB' is not a unit of size: " UNITS},
    {Where::option, "--limit=1e3MiB", "--limit: 1e3MiB: 'e3MiB' is not a unit of size: " UNITS},
    {Where::option, "--limit=0x10MiB", "--limit: 0x10MiB: 'x10MiB' is not a unit of size: " UNITS},
    {Where::option, "--limit=1.0000000001GiB", "--limit: 1.0000000001GiB: at most 9 digits after the point"},
    {Where::option, "--limit=16777216TiB", "--limit: 16777216TiB: " TOO_LARGE},
    {Where::option, "--limit=99999999999999999999KiB", "--limit: 99999999999999999999KiB: " TOO_LARGE},
    {Where::option, "--limit=4GiB\n", "--limit: 4GiB\\x0a: 'GiB\\x0a' is not a unit of size: " UNITS},
    {Where::option, "--headroom=64", "--headroom: 64: 64 bytes? did you mean 64MiB; or auto"},
    {Where::option, "--headroom=none",
     "--headroom: none: not a size: a number and its unit are needed, as 4GiB; or auto"},
    // The probable meaning, as the setting is written.
    {Where::option, "--limit=4294967296", "--limit: 4294967296: 4294967296 bytes? did you mean 4GiB"},
    {Where::option, "--limit=1610612736", "--limit: 1610612736: 1610612736 bytes? did you mean 1536MiB"},
    {Where::option, "--limit=99999999999999999999", "--limit: 99999999999999999999: " TOO_LARGE},
    {Where::option, "--limit=1,5GiB", "--limit: 1,5GiB: " POINT "1.5GiB"},
    {Where::option, "--limit=0=1,5GiB,1=2GiB", "--limit: 1,5GiB: " POINT "1.5GiB"},
    {Where::option, "--headroom=0,5GiB", "--headroom: 0,5GiB: " POINT "0.5GiB"},
    {Where::option, "--limit=1,GiB", "--limit: 1: 1 bytes? did you mean 1GiB"},
    {Where::option, "--limit=0=50%", "--limit: 0=50%: a share of the GPU is a fraction: did you mean --fraction 0=50%"},
    {Where::option, "--limit=0:1GiB", "--limit: 0:1GiB: " EQUALS "0=1GiB"},
    {Where::option, "--allocator=GPU-5f:growth", "--allocator: GPU-5f:growth: " EQUALS "GPU-5f=growth"},
    {Where::option, "--limit=x:1GiB", "--limit: x:1GiB: not a size: a number and its unit are needed, as 4GiB"},
    {Where::option, "--split=0:4", "--split: 0:4: " EQUALS "0=4"},
    {Where::option, "--limit=4GiB;1GiB",
     "--limit: 4GiB;1GiB: values of several GPUs are divided by commas, each with its GPU: 0=4GiB,1=1GiB"},
    {Where::option, "--fraction=0.4;0.1",
     "--fraction: 0.4;0.1: values of several GPUs are divided by commas, each with its GPU: 0=0.4,1=0.25"},
    {Where::option, "--gpus=0:1", "--gpus: 0:1: GPUs are divided by commas: did you mean 0,1"},
    {Where::variable, "CUSLICE_LIMIT=4", "CUSLICE_LIMIT: 4: 4 bytes? did you mean 4GiB"},
    {Where::variable, "CUSLICE_LIMIT=50%",
     "CUSLICE_LIMIT: 50%: a share of the GPU is a fraction: did you mean CUSLICE_FRACTION=50%"},
    {Where::variable, "CUSLICE_FRACTION=0,4", "CUSLICE_FRACTION: 0,4: " POINT "0.4"},
    {Where::config_file, "[memory]\nlimit = \"50%\"\n",
     "%CONFIG%:2:1: memory.limit: 50%: a share of the GPU is a fraction: did you mean fraction = \"50%\""},
    {Where::config_file, "[memory]\nfraction = \"0,4\"\n", "%CONFIG%:2:1: memory.fraction: 0,4: " POINT "0.4"},
    {Where::config_file, "[memory]\nlimit = \"0:1GiB\"\n",
     "%CONFIG%:2:1: memory.limit: 0:1GiB: a GPU's own value is in its table: [gpu.0]"},
    {Where::config_file, "[memory]\nfraction = 40\n",
     "%CONFIG%:2:1: memory.fraction: 40: " TOO_MUCH "1; did you mean 40%, in quotes"},
    // Fractions.
    {Where::option, "--fraction=0", "--fraction: 0: 0 leaves no memory: above 0 and at most 1"},
    {Where::option, "--fraction=0%", "--fraction: 0%: 0 leaves no memory: above 0 and at most 1"},
    {Where::option, "--fraction=-0.4", "--fraction: -0.4: a fraction is not negative: above 0 and at most 1"},
    {Where::option, "--fraction=1.2", "--fraction: 1.2: " TOO_MUCH "1"},
    {Where::option, "--fraction=1.0000000000001", "--fraction: 1.0000000000001: " TOO_MUCH "1"},
    {Where::option, "--fraction=120%", "--fraction: 120%: " TOO_MUCH "100%"},
    {Where::option, "--fraction=40", "--fraction: 40: " TOO_MUCH "1; did you mean 40%"},
    {Where::option, "--fraction=99999999999999999999999", "--fraction: 99999999999999999999999: " TOO_MUCH "1"},
    {Where::option, "--fraction=", "--fraction: \"\": empty: a fraction is needed, as 0.4"},
    {Where::option, "--fraction=%", "--fraction: %: " FRACTION_FORM},
    {Where::option, "--fraction=.", "--fraction: .: " FRACTION_FORM},
    {Where::option, "--fraction=half", "--fraction: half: " FRACTION_FORM},
    {Where::option, "--fraction=0.", "--fraction: 0.: a digit is needed after the point, as 0.4"},
    {Where::option, "--fraction=4e-1", "--fraction: 4e-1: " FRACTION_FORM},
    {Where::option, "--fraction=0.4 ", "--fraction: 0.4 : " FRACTION_FORM},
    {Where::option, "--fraction=4GiB", "--fraction: 4GiB: a size is a limit: did you mean --limit 4GiB"},
    {Where::option, "--fraction=0.0000000001", "--fraction: 0.0000000001: too small: at least 0.000000001"},
    {Where::option, "--fraction=0,4", "--fraction: 0,4: the decimal mark is a point: did you mean 0.4"},
    // GPUs.
    {Where::option, "--limit=-1=4GiB", "--limit: -1=4GiB: '-1' names no GPU: " GPU_FORM},
    {Where::option, "--limit=00=4GiB", "--limit: 00=4GiB: '00' names no GPU: " GPU_FORM},
    {Where::option, "--limit=10000=4GiB", "--limit: 10000=4GiB: '10000' names no GPU: " GPU_FORM},
    {Where::option, "--limit==4GiB", "--limit: =4GiB: '' names no GPU: " GPU_FORM},
    {Where::option, "--limit=gpu0=4GiB", "--limit: gpu0=4GiB: 'gpu0' names no GPU: " GPU_FORM},
    {Where::option, "--limit=GPU-=4GiB", "--limit: GPU-=4GiB: 'GPU-' names no GPU: " GPU_FORM},
    {Where::option, "--limit=GPU-xyz=4GiB", "--limit: GPU-xyz=4GiB: 'GPU-xyz' names no GPU: " GPU_FORM},
    {Where::option, "--limit=0000:81:00=4GiB", "--limit: 0000:81:00=4GiB: '0000:81:00' names no GPU: " GPU_FORM},
    {Where::option, "--limit=000:81:00.0=4GiB", "--limit: 000:81:00.0=4GiB: '000:81:00.0' names no GPU: " GPU_FORM},
    {Where::option, "--limit=0=4GiB,", "--limit: \"\": empty: a size is needed, as 4GiB"},
    {Where::option, "--limit=0=4GiB,,1=1GiB", "--limit: \"\": empty: a size is needed, as 4GiB"},
    {Where::option, "--limit=0=", "--limit: 0=: empty: a size is needed, as 4GiB"},
    {Where::option, "--limit=0=4GiB,1=1024", "--limit: 1=1024: 1024 bytes? did you mean 1024MiB"},
    {Where::option, "--limit=0=4GiB=2GiB", "--limit: 0=4GiB=2GiB: 'GiB=2GiB' is not a unit of size: " UNITS},
    {Where::option, "--limit=0=4GiB,0=2GiB",
     "--limit: 0=2GiB: given twice for the same GPU: 4GiB by --limit; keep one of them"},
    {Where::option, "--limit=0000:81:00.0=4GiB,00000000:81:00.0=2GiB",
     "--limit: 00000000:81:00.0=2GiB: given twice for the same GPU: 4GiB by --limit; keep one of them"},
    {Where::option, "--limit=GPU-5F=4GiB,GPU-5f=2GiB",
     "--limit: GPU-5f=2GiB: given twice for the same GPU: 4GiB by --limit; keep one of them"},
    // Words.
    {Where::option, "--limt=4GiB", "--limt: 4GiB: no such option; did you mean --limit", 64},
    {Where::option, "--frction=0.4", "--frction: 0.4: no such option; did you mean --fraction", 64},
    {Where::option, "--Limit=4GiB", "--Limit: 4GiB: no such option; did you mean --limit", 64},
    {Where::option, "--fake_kernels=skip", "--fake_kernels: skip: no such option; did you mean --fake-kernels", 64},
    {Where::option, "--memory=4GiB", "--memory: 4GiB: no such option; did you mean --limit", 64},
    {Where::option, "--max_gpu_mem=4GiB", "--max_gpu_mem: 4GiB: no such option; did you mean --limit", 64},
    {Where::option, "--colour=red", "--colour: red: no such option; cuslice help options lists all", 64},
    {Where::option, "--reserve=4GiB", "--reserve: 4GiB: reserve is not in this version yet", 64},
    {Where::option, "--allocator=grow", "--allocator: grow: direct, growth or prealloc"},
    {Where::option, "--allocator=1=growth,0=", "--allocator: 0=: direct, growth or prealloc"},
    {Where::option, "--free=now", "--free: now: strict or deferred"},
    {Where::option, "--idle-release=10", "--idle-release: 10: no, or a time: 500ms, 10s, 5m; did you mean 10s"},
    // Shares of time.
    {Where::option, "--share=30", "--share: 30: " PERCENT_FORM "; did you mean 30%"},
    {Where::option, "--share=0=30%,1=0.305", "--share: 1=0.305: " PERCENT_FORM},
    {Where::option, "--share=0,3", "--share: 0,3: the decimal mark is a point: did you mean 0.3"},
    {Where::variable, "CUSLICE_SHARE=half", "CUSLICE_SHARE: half: " PERCENT_FORM},
    {Where::config_file, "[memory]\nshare = 30\n",
     "%CONFIG%:2:1: memory.share: 30: " PERCENT_FORM "; did you mean 30%, in quotes"},
    {Where::config_file, "share = \"30%\"\n",
     "%CONFIG%:1:1: share: 30%: belongs in a table: [memory] for every GPU, or [gpu.0] for one"},
    {Where::option, "--share-cap=50%", "--share-cap: 50%: it needs a share of that GPU, as --share 30%"},
    {Where::option, "--share-quantum=50", "--share-quantum: 50: a time from 5ms to 500ms, as 20ms; did you mean 50ms"},
    {Where::option, "--share-quantum=1s", "--share-quantum: 1s: a time from 5ms to 500ms, as 20ms"},
    {Where::option, "--gpus=x", "--gpus: x: 'x' names no GPU: " GPUS_FORM},
    {Where::option, "--gpus=0,", "--gpus: 0,: '' names no GPU: " GPUS_FORM},
    {Where::option, "--gpus=-1", "--gpus: -1: '-1' names no GPU: " GPUS_FORM},
    {Where::option, "--gpus=*", "--gpus: *: '*' names no GPU: " GPUS_FORM},
    {Where::option, "--gpus=any,1", "--gpus: any,1: 'any' names no GPU: " GPUS_FORM},
    {Where::option, "--gpus=1,0,1", "--gpus: 1,0,1: '1' is there twice; name each GPU once"},
    // Virtual GPUs.
    {Where::option, "--split=", "--split: \"\": " NO_SPLIT},
    {Where::option, "--split=0=", "--split: 0=: " NO_SPLIT},
    {Where::option, "--split=0=0", "--split: 0=0: " NO_PARTS},
    {Where::option, "--split=000", "--split: 000: " NO_PARTS},
    {Where::option, "--split=65", "--split: 65: 65 " MANY_PARTS "65MiB"},
    {Where::option, "--split=0=99999999999999999999",
     "--split: 0=99999999999999999999: 99999999999999999999 " MANY_PARTS "99999999999999999999MiB"},
    {Where::option, "--split=0=1024+1GiB", "--split: 0=1024+1GiB: 1024 bytes? did you mean 1024MiB"},
    {Where::option, "--split=2+2", "--split: 2+2: 2 bytes? did you mean 2GiB"},
    {Where::option, "--split=0.5+0.5", "--split: 0.5+0.5: 0.5 " PART_FRACTION},
    {Where::option, "--split=0=1GiB+40%", "--split: 0=1GiB+40%: 40% " PART_FRACTION},
    {Where::option, "--split=1GiB+150%", "--split: 1GiB+150%: '%' is not a unit of size: " UNITS},
    {Where::option, "--split=1.0", "--split: 1.0: 1.0 " PART_FRACTION},
    {Where::option, "--split=2.5", "--split: 2.5: 2.5 bytes? did you mean 2.5GiB"},
    {Where::option, "--split=rest+1GiB+rest",
     "--split: rest+1GiB+rest: rest is there twice: one partition can have what the others leave"},
    {Where::option, "--split=1GiB+Rest",
     "--split: 1GiB+Rest: not a size: a number and its unit are needed, as 4GiB; or rest, or a number of equal "
     "partitions"},
    {Where::option, "--split=two",
     "--split: two: not a size: a number and its unit are needed, as 4GiB; or rest, or a number of equal partitions"},
    {Where::option, "--split=-2", "--split: -2: a size is not negative: more than 0, as 4GiB"},
    {Where::option, "--split=1GiB++1GiB", "--split: 1GiB++1GiB: " EMPTY_PART},
    {Where::option, "--split=+1GiB", "--split: +1GiB: " EMPTY_PART},
    {Where::option, "--split=0=1GiB+", "--split: 0=1GiB+: " EMPTY_PART},
    {Where::option, "--split=1GiB+@1", "--split: 1GiB+@1: " EMPTY_PART},
    {Where::option, "--split=1GiB + 1GiB", "--split: 1GiB + 1GiB: a size has no spaces in it, as 4GiB"},
    {Where::option, "--split=2x1GiB", "--split: 2x1GiB: 'x1GiB' is not a unit of size: " UNITS},
    {Where::option, "--split=0=1GiB+63MiB",
     "--split: 0=1GiB+63MiB: 63MiB is too little for a GPU: a partition has at least 64MiB"},
    {Where::option, "--split=0=0MiB+1GiB",
     "--split: 0=0MiB+1GiB: 0MiB is too little for a GPU: a partition has at least 64MiB"},
    {Where::option, "--split=0=16777216TiB", "--split: 0=16777216TiB: " TOO_LARGE},
    {Where::option, "--split=4@2",
     "--split: 4@2: equal partitions have no places in an order: they are all alike; sizes have, as 1GiB@1+2GiB@0"},
    {Where::option, "--split=0=1GiB@1+2GiB", "--split: 0=1GiB@1+2GiB: " ALL_OR_NONE},
    {Where::option, "--split=0=1GiB+2GiB@0", "--split: 0=1GiB+2GiB@0: " ALL_OR_NONE},
    {Where::option, "--split=0=1GiB@+2GiB@0", "--split: 0=1GiB@+2GiB@0: " NO_PLACE},
    {Where::option, "--split=0=1GiB@first", "--split: 0=1GiB@first: " NO_PLACE},
    {Where::option, "--split=0=1GiB@-1", "--split: 0=1GiB@-1: " NO_PLACE},
    {Where::option, "--split=0=1GiB@1@2", "--split: 0=1GiB@1@2: " NO_PLACE},
    {Where::option, "--split=0=1GiB@10000", "--split: 0=1GiB@10000: a place is a number up to 9999"},
    {Where::option, "--split=0=4#2",
     "--split: 0=4#2: equal partitions are numbered as they come; sizes may have numbers, as 1GiB#2+2GiB#5"},
    {Where::option, "--split=0=1GiB#", "--split: 0=1GiB#: " NO_NUMBER},
    {Where::option, "--split=0=rest#64", "--split: 0=rest#64: " NO_NUMBER},
    {Where::option, "--split=0=rest#4294967296", "--split: 0=rest#4294967296: " NO_NUMBER},
    {Where::option, "--split=0=1GiB#-1", "--split: 0=1GiB#-1: " NO_NUMBER},
    {Where::option, "--split=0=1GiB#1#2", "--split: 0=1GiB#1#2: " NO_NUMBER},
    {Where::option, "--split=#1+1GiB", "--split: #1+1GiB: " EMPTY_PART},
    {Where::option, "--split=0=1GiB#1+2GiB", "--split: 0=1GiB#1+2GiB: " ALL_NUMBERED},
    {Where::option, "--split=0=1GiB+2GiB#1", "--split: 0=1GiB+2GiB#1: " ALL_NUMBERED},
    {Where::option, "--split=0=1GiB#1+2GiB#01",
     "--split: 0=1GiB#1+2GiB#01: two partitions have the same number, and would have the same identity"},
    {Where::option, "--split=0=1GiB@1#2",
     "--split: 0=1GiB@1#2: a partition's number comes before its place, as 1GiB#2@1"},
    {Where::option, "--split=0=1GiB:-1#2",
     "--split: 0=1GiB:-1#2: a partition's number comes before its priority, as 1GiB#2:-1"},
    {Where::option, "--split=0=4:-1",
     "--split: 0=4:-1: equal partitions have no priorities: they are all alike; sizes have, as 1GiB:-1+2GiB:0"},
    {Where::option, "--split=0=1GiB:", "--split: 0=1GiB:: " NO_PRIORITY},
    {Where::option, "--split=0=1GiB:-+rest", "--split: 0=1GiB:-+rest: " NO_PRIORITY},
    {Where::option, "--split=0=1GiB:high", "--split: 0=1GiB:high: " NO_PRIORITY},
    {Where::option, "--split=0=1GiB:--1", "--split: 0=1GiB:--1: " NO_PRIORITY},
    {Where::option, "--split=0=1GiB:0:1", "--split: 0=1GiB:0:1: " NO_PRIORITY},
    {Where::option, "--split=0=1GiB:1.5", "--split: 0=1GiB:1.5: " NO_PRIORITY},
    {Where::option, "--split=0=1GiB:-33", "--split: 0=1GiB:-33: " FAR_PRIORITY},
    {Where::option, "--split=0=1GiB:4294967296", "--split: 0=1GiB:4294967296: " FAR_PRIORITY},
    {Where::option, "--split=0=1GiB:-1@1",
     "--split: 0=1GiB:-1@1: a partition's place comes before its priority, as 1GiB@1:-1"},
    {Where::option, "--split=:-1+1GiB", "--split: :-1+1GiB: " EMPTY_PART},
    {Where::option, "--split=0=2,0=4", "--split: 0=4: given twice for the same GPU: 2 by --split; keep one of them"},
    {Where::option, "--split=0=1GiB,2GiB", "--split: 2GiB: " WHICH_GPU},
    {Where::option, "--split=0=1GiB,1=2,rest", "--split: rest: " WHICH_GPU},
    {Where::option, "--split=x=2", "--split: x=2: 'x' names no GPU: " GPU_FORM},
    {Where::option, "--splt=2", "--splt: 2: no such option; did you mean --split", 64},
    {Where::option, "--oversubscribe=maybe", "--oversubscribe: maybe: yes or no"},
    {Where::option, "--summary=short", "--summary: short: yes or no"},
    {Where::variable, "CUSLICE_GPUS=0 1", "CUSLICE_GPUS: 0 1: GPUs are divided by commas: did you mean 0,1"},
    {Where::config_file, "gpus = 0\n", "%CONFIG%:1:1: gpus: 0: a string is needed, as gpus = \"3,2\""},
    {Where::config_file, "[memory]\ngpus = \"0\"\n",
     "%CONFIG%:2:1: memory.gpus: 0: belongs at the top of the file, before the first table"},
    {Where::option, "--wait=10", "--wait: 10: " WAIT_FORM "; did you mean 10s"},
    {Where::option, "--wait=1", "--wait: 1: " WAIT_FORM "; did you mean 1s"},
    {Where::option, "--wait=0", "--wait: 0: " WAIT_FORM},
    {Where::option, "--wait=", "--wait: \"\": " WAIT_FORM},
    {Where::option, "--per-process=", "--per-process: \"\": yes or no"},
    {Where::option, "--oversubscribe=", "--oversubscribe: \"\": yes or no"},
    {Where::option, "--no-framework-env=", "--no-framework-env: \"\": yes or no"},
    {Where::variable, "CUSLICE_WAIT=1", "CUSLICE_WAIT: 1: " WAIT_FORM "; did you mean 1s"},
    {Where::option, "--group-limit=8GiB", "--group-limit: 8GiB: " NO_GROUP},
    {Where::variable, "CUSLICE_GROUP_LIMIT=0=8GiB", "CUSLICE_GROUP_LIMIT: 0=8GiB: " NO_GROUP},
    {Where::option, "--per-process=maybe", "--per-process: maybe: yes or no"},
    {Where::option, "--admission=maybe", "--admission: maybe: launch or first-context"},
    {Where::option, "--no-framework-env=maybe", "--no-framework-env: maybe: yes or no"},
    {Where::option, "--group=a b",
     "--group: a b: a name of up to 63 letters, digits, '.', '_' and '-' is needed; or @container"},
    {Where::option, "--group=@pod",
     "--group: @pod: a name of up to 63 letters, digits, '.', '_' and '-' is needed; or @container"},
    {Where::option, "--group-limit=4", "--group-limit: 4: 4 bytes? did you mean 4GiB"},
    {Where::option, "--dir=here", "--dir: here: an absolute path is needed, the same for everybody"},
    {Where::option, "--record=", "--record: \"\": empty: the path of a file is needed"},
    {Where::option, "--record=/tmp/a\tb.csv", "--record: /tmp/a\\x09b.csv: a path has no control characters in it"},
    {Where::option, "--limit", "--limit: a value is needed after it: --limit SIZE", 64},
    {Where::option, "--log=loud", "--log: loud: " LOG_FORM},
    {Where::option, "--log=INFO", "--log: INFO: " LOG_FORM},
    {Where::option, "--log=", "--log: \"\": " LOG_FORM},
    {Where::option, "--log=info:", "--log: info:: a file is needed after the colon, as info:/tmp/slice.log"},
    {Where::option, "--log=info:/nowhere/slice.log",
     "--log: info:/nowhere/slice.log: cannot be written: No such file or directory"},
    {Where::option, "--log=info:/tmp", "--log: info:/tmp: cannot be written: Is a directory"},
    {Where::option, "--headroom=0", "--headroom: 0: 0 bytes? did you mean 0MiB; or auto"},
    {Where::option, "--fake-kernels=run", "--fake-kernels: run: skip or error"},
    {Where::option,
     "--fake-machine=", "--fake-machine: \"\": a name of up to 63 letters, digits, '.', '_' and '-' is needed"},
    {Where::option, "--fake-machine=../a",
     "--fake-machine: ../a: a name of up to 63 letters, digits, '.', '_' and '-' is needed"},
    {Where::option, "--fake=", "--fake: \"\": empty: fake GPUs are needed, as 4xh200, or a TOML file"},
    {Where::option, "--driver=", "--driver: \"\": empty: the path of a file is needed"},
    {Where::option, "--driver=/nowhere/libcuda.so.1",
     "--driver: /nowhere/libcuda.so.1: no such file, or it may not be read"},
    {Where::option, "--redirect-runtime=yes", "--redirect-runtime: yes: no, program or all"},
    {Where::option, "--runtime=", "--runtime: \"\": empty: the path of a file is needed"},
    {Where::option, "--runtime=/dev/null", "--runtime: /dev/null: it is for --redirect-runtime, which isn't asked for"},
    {Where::option, "--config=/nowhere/cuslice.toml", "--config: /nowhere/cuslice.toml: cannot be read: no such file"},
    {Where::option, "--config=/", "--config: /: not a regular file"},
    {Where::option, "--config=", "--config: \"\": empty: the path of a file is needed"},
    // The environment.
    {Where::variable, "CUSLICE_LIMIT=1024", "CUSLICE_LIMIT: 1024: 1024 bytes? did you mean 1024MiB"},
    {Where::variable, "CUSLICE_LIMIT=", "CUSLICE_LIMIT: \"\": empty: a size is needed, as 4GiB"},
    {Where::variable, "CUSLICE_FRACTION=0=1.2", "CUSLICE_FRACTION: 0=1.2: " TOO_MUCH "1"},
    {Where::variable, "CUSLICE_LIMT=4GiB", "CUSLICE_LIMT: 4GiB: no such variable; did you mean CUSLICE_LIMIT"},
    {Where::variable, "CUSLICE_FAKE_KERNEL=skip",
     "CUSLICE_FAKE_KERNEL: skip: no such variable; did you mean CUSLICE_FAKE_KERNELS"},
    {Where::variable, "CUSLICE_FOO=1", "CUSLICE_FOO: 1: no such variable; cuslice help options lists all"},
    {Where::variable, "CUSLICE_RESERVE=4GiB", "CUSLICE_RESERVE: 4GiB: reserve is not in this version yet"},
    {Where::variable, "CUSLICE_SPLIT=0=2,1=0", "CUSLICE_SPLIT: 1=0: " NO_PARTS},
    {Where::variable, "CUSLICE_OVERSUBSCRIBE=2", "CUSLICE_OVERSUBSCRIBE: 2: yes or no"},
    {Where::variable, "CUSLICE_IDLE_RELEASE=yes", "CUSLICE_IDLE_RELEASE: yes: no, or a time: 500ms, 10s, 5m"},
    {Where::variable, "CUSLICE_CONFIG=1", "CUSLICE_CONFIG: 1: cannot be read: no such file"},
    {Where::variable, "CUSLICE_CONFIG=/nowhere/cuslice.toml",
     "CUSLICE_CONFIG: /nowhere/cuslice.toml: cannot be read: no such file"},
    {Where::variable, "CUSLICE_SETTINGS=2;flag.0 limit * 4GiB --limit",
     "CUSLICE_SETTINGS: 2: " NOT_OURS ": unset it, or use one version of cuslice"},
    {Where::variable, "CUSLICE_SETTINGS=1;flag.0 limit *", "CUSLICE_SETTINGS: flag.0 limit *: " NOT_OURS},
    {Where::variable, "CUSLICE_SETTINGS=1;king.0 limit * 4GiB --limit",
     "CUSLICE_SETTINGS: king.0 limit * 4GiB --limit: " NOT_OURS},
    // Other tools' variables.
    {Where::variable, "CUDA_DEVICE_MEMORY_LIMIT=1.5g", "CUDA_DEVICE_MEMORY_LIMIT: 1.5g: " HAMI_FORM},
    {Where::variable, "CUDA_DEVICE_MEMORY_LIMIT_0=4GiB", "CUDA_DEVICE_MEMORY_LIMIT_0: 4GiB: " HAMI_FORM},
    {Where::variable, "CUDA_DEVICE_MEMORY_LIMIT_1=17179869184g",
     "CUDA_DEVICE_MEMORY_LIMIT_1: 17179869184g: more bytes than 64 bits can count"},
    {Where::variable, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1G", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: 1G: " MPS_FORM},
    {Where::variable, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G,1=1024",
     "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: 1=1024: " MPS_FORM},
    {Where::variable, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=0G",
     "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: 0=0G: a limit of 0 leaves no memory: more than 0"},
    {Where::variable, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=first=1G",
     "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: first=1G: 'first' names no GPU: " GPU_FORM},
    {Where::variable, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G,0=2G",
     "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: 0=2G: given twice for the same GPU: 1G by CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; "
     "keep "
     "one of them"},
    // Files.
    {Where::config_file, "[memory]\nlimit = 1024\n",
     "%CONFIG%:2:1: memory.limit: 1024: 1024 bytes? did you mean 1024MiB, in quotes"},
    {Where::user_file, "[memory]\n  limit = \"4 GiB\"\n",
     "%USER%:2:3: memory.limit: 4 GiB: a size has no spaces in it, as 4GiB"},
    {Where::current_folder, "[gpu.0]\nlimit = true\n",
     "%CWD%:2:1: gpu.0.limit: true: a string is needed, as limit = \"4GiB\""},
    {Where::config_file, "[memory]\nfraction = [0.4]\n",
     "%CONFIG%:2:1: memory.fraction: [0.4]: a number or a string is needed, as fraction = 0.4"},
    {Where::config_file, "[memory]\nfraction = 1.2 # more\n", "%CONFIG%:2:1: memory.fraction: 1.2: " TOO_MUCH "1"},
    {Where::config_file, "[memory]\nfraction = inf\n", "%CONFIG%:2:1: memory.fraction: inf: " FRACTION_FORM},
    {Where::config_file, "[memory]\nlimit = 2020-01-01\n",
     "%CONFIG%:2:1: memory.limit: 2020-01-01: a string is needed, as limit = \"4GiB\""},
    {Where::config_file, "[memory]\nlimt = \"4GiB\"\n",
     "%CONFIG%:2:1: memory.limt: 4GiB: no such key; did you mean limit"},
    {Where::config_file, "[memory]\nlimit = \"\"\n",
     "%CONFIG%:2:1: memory.limit: \"\": empty: a size is needed, as 4GiB"},
    {Where::config_file, "[memory]\nreserve = \"4GiB\"\n",
     "%CONFIG%:2:1: memory.reserve: 4GiB: reserve is not in this version yet"},
    {Where::config_file, "[memory]\nallocator = \"grow\"\n",
     "%CONFIG%:2:1: memory.allocator: grow: direct, growth or prealloc"},
    {Where::config_file, "[memory]\nfree = true\n",
     "%CONFIG%:2:1: memory.free: true: a string is needed, as free = \"deferred\""},
    {Where::config_file, "allocator = \"growth\"\n",
     "%CONFIG%:1:1: allocator: growth: belongs in a table: [memory] for every GPU, or [gpu.0] for one"},
    {Where::config_file, "[gpu.\"GPU-5f1c\"]\nsplit = [\"1GiB\", \"1024\"]\n",
     "%CONFIG%:2:1: gpu.GPU-5f1c.split: [\"1GiB\", \"1024\"]: 1024 bytes? did you mean 1024MiB"},
    {Where::config_file, "[gpu.0]\nsplit = [\"1GiB\", 2]\n",
     "%CONFIG%:2:1: gpu.0.split: [\"1GiB\", 2]: a number, a string or an array of strings is needed, as split = "
     "[\"1GiB\", \"rest\"]"},
    {Where::config_file, "[gpu.0]\nsplit = true\n",
     "%CONFIG%:2:1: gpu.0.split: true: a number, a string or an array of strings is needed, as split = [\"1GiB\", "
     "\"rest\"]"},
    {Where::config_file, "[gpu.0]\nsplit = []\n", "%CONFIG%:2:1: gpu.0.split: []: " NO_SPLIT},
    {Where::config_file, "[gpu.0]\nsplit = [\"1GiB\", \"\"]\n",
     "%CONFIG%:2:1: gpu.0.split: [\"1GiB\", \"\"]: " EMPTY_PART},
    {Where::config_file, "[gpu.0]\nsplit = 0.5\n", "%CONFIG%:2:1: gpu.0.split: 0.5: 0.5 " PART_FRACTION},
    {Where::config_file, "[gpu.0]\nsplit = 1024\n", "%CONFIG%:2:1: gpu.0.split: 1024: 1024 " MANY_PARTS "1024MiB"},
    {Where::config_file, "[gpu.0]\nlimit = [\"1GiB\"]\n",
     "%CONFIG%:2:1: gpu.0.limit: [\"1GiB\"]: a string is needed, as limit = \"4GiB\""},
    {Where::config_file, "split = 4\n",
     "%CONFIG%:1:1: split: 4: belongs in a table: [memory] for every GPU, or [gpu.0] for one"},
    {Where::config_file, "oversubscribe = 1\n",
     "%CONFIG%:1:1: oversubscribe: 1: a string is needed, as oversubscribe = true"},
    {Where::config_file, "[gpu.0]\noversubscribe = true\n",
     "%CONFIG%:2:1: gpu.0.oversubscribe: true: belongs at the top of the file, before the first table"},
    {Where::system_file, "[ceiling]\nsplit = 2\n",
     "%SYSTEM%:2:1: ceiling.split: 2: a ceiling is a fraction or a limit"},
    {Where::config_file, "[memory]\nlimit = \"4GiB\"\nfraction = 0.4\n",
     "%CONFIG%:3:1: memory.fraction: 0.4: fraction and limit for the same GPU from one source: %CONFIG%:2:1 says 4GiB; "
     "keep "
     "one of them"},
    {Where::config_file, "[memroy]\nlimit = \"4GiB\"\n", "%CONFIG%:1:2: memroy: " TABLES},
    {Where::config_file, "[gpu.first]\n", "%CONFIG%:1:6: gpu.first: 'first' names no GPU: " GPU_FORM},
    {Where::config_file, "[gpu]\nlimit = \"4GiB\"\n", "%CONFIG%:2:1: gpu.limit: 4GiB: " GPU_TABLE},
    {Where::config_file, "gpu = 3\n", "%CONFIG%:1:1: gpu: 3: " GPU_TABLE},
    {Where::config_file, "memory = \"4GiB\"\n", "%CONFIG%:1:1: memory: 4GiB: a table is needed: [memory]"},
    {Where::config_file, "limit = \"4GiB\"\n",
     "%CONFIG%:1:1: limit: 4GiB: belongs in a table: [memory] for every GPU, or [gpu.0] for one"},
    {Where::config_file, "[memory]\nlog = \"info\"\n",
     "%CONFIG%:2:1: memory.log: info: belongs at the top of the file, before the first table"},
    {Where::config_file, "config = \"/tmp/x.toml\"\n",
     "%CONFIG%:1:1: config: /tmp/x.toml: config has no meaning in a file"},
    {Where::config_file, "confg = \"/tmp/x.toml\"\n",
     "%CONFIG%:1:1: confg: /tmp/x.toml: no such key; cuslice help options lists all"},
    {Where::config_file, "log = 3\n", "%CONFIG%:1:1: log: 3: a string is needed, as log = \"info\""},
    {Where::config_file, "log = \"info:here.log\"\n",
     "%CONFIG%:1:1: log: info:here.log: a path in a file is absolute: it begins with /"},
    {Where::config_file, "record = true\n",
     "%CONFIG%:1:1: record: true: a string is needed, as record = \"/tmp/%p.csv\""},
    {Where::config_file, "record = \"here.csv\"\n",
     "%CONFIG%:1:1: record: here.csv: a path in a file is absolute: it begins with /"},
    {Where::config_file, "[memory]\nrecord = \"/tmp/x.csv\"\n",
     "%CONFIG%:2:1: memory.record: /tmp/x.csv: belongs at the top of the file, before the first table"},
    {Where::config_file, "driver = \"libcuda.so.1\"\n",
     "%CONFIG%:1:1: driver: libcuda.so.1: a path in a file is absolute: it begins with /"},
    {Where::user_file, "[ceiling]\nlimit = \"4GiB\"\n",
     "%USER%:1:2: ceiling: only the system's file sets ceilings: /etc/cuslice/cuslice.toml"},
    {Where::system_file, "[ceiling]\nheadroom = \"1GiB\"\n",
     "%SYSTEM%:2:1: ceiling.headroom: 1GiB: a ceiling is a fraction or a limit"},
    {Where::system_file, "[ceiling.gpu.x]\nlimit = \"1GiB\"\n",
     "%SYSTEM%:1:14: ceiling.gpu.x: 'x' names no GPU: " GPU_FORM},
    {Where::current_folder, "driver = \"/tmp/libcuda.so.1\"\n",
     "%CWD%:1:1: driver: /tmp/libcuda.so.1: driver is not taken from the current folder, which could choose code to "
     "run: use "
     "--driver"},
    {Where::current_folder, "record = \"/tmp/x.csv\"\n",
     "%CWD%:1:1: record: /tmp/x.csv: record is not taken from the current folder, which could have files made "
     "anywhere: use "
     "--record"},
    {Where::current_folder, "dir = \"/tmp/x\"\n",
     "%CWD%:1:1: dir: /tmp/x: dir is not taken from the current folder, which could have folders made anywhere: use "
     "--dir"},
    {Where::config_file, "log = \"info:/nowhere/x\"\n",
     "%CONFIG%:1:1: log: info:/nowhere/x: cannot be written: No such file or directory"},
    {Where::config_file, "record = \"/nowhere/x\"\n",
     "%CONFIG%:1:1: record: /nowhere/x: cannot be made: No such file or directory"},
    {Where::config_file, "fake = \"9xnone\"\n", "%CONFIG%:1:1: fake: 9xnone: no such profile; there is stub"},
    {Where::current_folder, "log = \"info:/tmp/x\"\n",
     "%CWD%:1:1: log: info:/tmp/x: a log file is not taken from the current folder, which could choose any of yours: "
     "use "
     "--log"},
    {Where::config_file, "[memory]\nlimit = 4GiB\n",
     "%CONFIG%:2:10: limit = 4GiB: not TOML: Error while parsing decimal integer: expected digit, saw 'G'; a string is "
     "written in quotes, as limit = \"4GiB\""},
    {Where::config_file, "[memory]\nlimit = \"4GiB\"\nlimit = \"2GiB\"\n",
     "%CONFIG%:3:9: limit = \"2GiB\": not TOML: Error while parsing key-value pair: cannot redefine existing string "
     "'limit'"},
    {Where::config_file, "[memory",
     "%CONFIG%:1:8: [memory: not TOML: Error while parsing table header: encountered end-of-file"},
    {Where::config_file, "[memory]\n[memory]\n",
     "%CONFIG%:2:1: [memory]: not TOML: Error while parsing table header: cannot redefine existing table 'memory'"},
};

#undef UNITS
#undef FRACTION_FORM
#undef GPU_FORM
#undef TOO_LARGE
#undef TOO_MUCH
#undef LOG_FORM
#undef HAMI_FORM
#undef MPS_FORM
#undef TABLES
#undef WHICH_GPU
#undef NO_SPLIT
#undef NO_PARTS
#undef MANY_PARTS
#undef EMPTY_PART
#undef PART_FRACTION
#undef ALL_OR_NONE
#undef NO_PLACE
#undef GPU_TABLE
#undef WAIT_FORM
#undef NO_GROUP
#undef POINT
#undef EQUALS
#undef NOT_OURS

}  // namespace cuslice::tests
