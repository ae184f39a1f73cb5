# SPDX-License-Identifier: Apache-2.0
"""Recipes for somebody who used TensorFlow's GPU options: settings that each way into a slice can have, and the program
of tensorflow_programs.py that shows what came of them."""

import dataclasses

LAPTOP, TWO, MIXED = "1xlaptop-2g", "2xt4", "1xt4,1xl4,1xa100-40g"
CDI, RULE, PRELOADED = ("CDI",), ("rule",), ("environment", "TOML")


@dataclasses.dataclass
class Reason:
    """`link`: a heading of the documents that says it; `line`: words of the line of cuslice's that goes with it."""

    why: str
    link: str
    line: str = ""


ALWAYS_LIMITED = Reason(
    "a device of CDI always has a limit: as `--fraction 1`",
    "../../containers.md#slices-as-cdi-devices",
)
COUNTED = Reason("a rule's limit counts the context: as without `+context`", "../../rules.md#a-file-of-rules")
BOUNDED = Reason(
    "the program's variable bounds `gpus`, in which there is another GPU: `cuInit` fails with a line, and TensorFlow "
    "goes on on the CPU, as with `--gpus none`",
    "../../configuration.md#choosing-gpus",
    "is not among the GPUs that are left to choose from",
)
UNORDERED = Reason(
    "`cuInit` fails with a line, as the variable's numbers are CUDA's own, whose order of GPUs of several models isn't "
    "known: TensorFlow goes on on the CPU, as with `--gpus none`",
    "../../configuration.md#choosing-gpus",
    "CUDA's order of GPUs of several models is not known here",
)
NO_GPU = Reason(
    "`cuInit` fails with a line where `cuslice run` refuses to start: TensorFlow goes on on the CPU, as with "
    "`--gpus none`",
    "../../configuration.md#sources",
    "no GPU will be used",
)


@dataclasses.dataclass
class Difference:
    """Ways in which a recipe gives something else than `cuslice run` with the same settings: as much as `cuslice run`
    gives with those of `like` in their place, where a key whose value is None is left out."""

    ways: tuple
    reason: Reason
    like: dict


@dataclasses.dataclass
class Recipe:
    """`settings`: keys of cuslice.toml, with their values as options have them."""

    what: str
    fake: str
    settings: dict
    words: tuple
    differences: tuple = ()
    statuses: tuple = (0,)

    def difference(self, way):
        """The one that is expected of a way, or None."""
        return next((one for one in self.differences if way in one.ways), None)

    def options(self):
        """As `cuslice run` is given them."""
        return " ".join(
            f"--{key}" if value == "yes" else f"--{key} {value or chr(34) * 2}" for key, value in self.settings.items()
        )


def without_limit(what, fake, settings, words):
    """A recipe that sets no limit, where a device of CDI has one."""
    return Recipe(what, fake, settings, words, (Difference(CDI, ALWAYS_LIMITED, {"fraction": "1"}),))


def session(options):
    """A session of TensorFlow 1 with these GPUOptions."""
    return "session", "gpu_options { " + options + " }"


TAKE, GROW = ("take",), ("growth", "unset")
RECIPES = {
    "default": without_limit("nothing set: nearly all of the GPU", LAPTOP, {}, TAKE),
    "limit": Recipe("a limit", LAPTOP, {"limit": "1024MiB"}, TAKE),
    "context": Recipe(
        "a limit for tensors alone, as `memory_limit=1024`",
        LAPTOP,
        {"limit": "1024MiB+context"},
        TAKE,
        (Difference(RULE, COUNTED, {"limit": "1024MiB"}),),
    ),
    "h200": Recipe("a small limit on a large GPU", "1xh200", {"limit": "2650MiB"}, TAKE),
    "fraction": Recipe("a fraction of each of two GPUs", TWO, {"fraction": "0.4"}, TAKE),
    "half": Recipe(
        "half of the first of three GPUs, which grows",
        "3xt4",
        {"gpus": "0", "fraction": "0.5", "allocator": "growth"},
        GROW,
    ),
    "fractions": Recipe("a fraction for each GPU", "3xt4", {"fraction": "0=0.4,1=0.2,2=0.1"}, TAKE),
    "limits": Recipe("a limit for each GPU, and their order", TWO, {"limit": "0=4GiB,1=8GiB", "gpus": "1,0"}, TAKE),
    "growth": without_limit("growth", LAPTOP, {"allocator": "growth"}, GROW),
    "growth_limit": Recipe("growth and a limit", LAPTOP, {"limit": "1024MiB", "allocator": "growth"}, GROW),
    "growth_first": without_limit("growth on the first of two GPUs", TWO, {"allocator": "0=growth"}, GROW),
    "plain_growth": Recipe(
        "growth without TensorFlow's variables",
        LAPTOP,
        {"limit": "1024MiB", "allocator": "growth", "no-framework-env": "yes"},
        GROW,
    ),
    "order": Recipe("GPUs in another order", MIXED, {"limit": "2GiB", "gpus": "2,0"}, ("names",)),
    "none": Recipe("no GPU", TWO, {"gpus": "none"}, ("names",)),
    "chosen_first": Recipe(
        "`CUDA_VISIBLE_DEVICES` of the program, before the import", MIXED, {"limit": "2GiB"}, ("choose_first", "1")
    ),
    "chosen": Recipe(
        "`CUDA_VISIBLE_DEVICES` of the program, after the import", MIXED, {"limit": "2GiB"}, ("choose", "1")
    ),
    "chosen_late": Recipe(
        "`CUDA_VISIBLE_DEVICES` of the program, after the first operation", TWO, {"limit": "2GiB"}, ("choose_late", "1")
    ),
    "chosen_within": Recipe(
        "`CUDA_VISIBLE_DEVICES` of the program, under `--gpus`",
        TWO,
        {"limit": "2GiB", "gpus": "1,0"},
        ("choose", "0"),
        (Difference(PRELOADED + CDI + RULE, BOUNDED, {"gpus": "none"}),),
    ),
    "chosen_mixed": Recipe(
        "`CUDA_VISIBLE_DEVICES` of the program, under `--gpus`, GPUs of several models",
        MIXED,
        {"limit": "2GiB", "gpus": "1,0"},
        ("choose", "0"),
        (Difference(PRELOADED + CDI + RULE, UNORDERED, {"gpus": "none"}),),
    ),
    "own_fraction": Recipe(
        "the program's own fraction in a slice",
        "1xt4",
        {"limit": "4GiB"},
        session("per_process_gpu_memory_fraction: 0.5"),
    ),
    "kept_fraction": Recipe(
        "the program's own fraction, which TensorFlow reads",
        "1xt4",
        {"limit": "4GiB", "no-framework-env": "yes"},
        session("per_process_gpu_memory_fraction: 0.5"),
    ),
    "both": Recipe(
        "the program's own fraction and growth",
        "1xt4",
        {"limit": "4GiB"},
        session("per_process_gpu_memory_fraction: 0.9 allow_growth: true"),
    ),
    "logical": Recipe("logical devices in a slice", "1xh200", {"limit": "4GiB"}, ("limits", "1024", "1024")),
    "logical_full": Recipe("a logical device as large as the slice", "1xt4", {"limit": "1GiB"}, ("limits", "1024")),
    "own_growth": Recipe("`set_memory_growth` in a slice", LAPTOP, {"limit": "1024MiB"}, ("growth",)),
    "own_growth_first": Recipe(
        "`set_memory_growth` of the first of two GPUs in a slice", TWO, {"limit": "2GiB"}, ("growth", "first")
    ),
    "session": Recipe("a session of TensorFlow 1", LAPTOP, {"limit": "1024MiB"}, ("session", "")),
    "visible": Recipe("`set_visible_devices` in a slice", TWO, {"limit": "2GiB"}, ("visible", "1")),
    "visible_list": Recipe(
        "`visible_device_list` in a slice", TWO, {"limit": "0=2GiB,1=4GiB"}, session('visible_device_list: "1,0"')
    ),
    "parts": Recipe("a slice in eight", "1xh200", {"limit": "24GiB", "split": "0=8"}, TAKE),
    "halves": Recipe("two partitions", LAPTOP, {"split": "0=2"}, TAKE),
    "sizes": Recipe("partitions of two sizes", "1xt4", {"split": "0=1GiB+2GiB"}, TAKE),
    "beside": Recipe("two of 2048 MiB for tensors alone", "1xt4", {"split": "0=2048MiB+2048MiB+context"}, TAKE),
    "towers": Recipe("towers by `tf.device` on three partitions", "1xt4", {"split": "0=3"}, ("towers",)),
    "mirrored": Recipe(
        "`MirroredStrategy` with `HierarchicalCopyAllReduce`", "1xt4", {"split": "0=2"}, ("mirrored", "hierarchical")
    ),
    "split_growth": Recipe(
        "two partitions that grow",
        LAPTOP,
        {"limit": "1600MiB", "split": "0=2", "allocator": "growth"},
        GROW,
    ),
    "cluster": Recipe("a server of a cluster on two partitions", "1xt4", {"split": "0=2"}, ("server",)),
    "soft": Recipe("soft placement", "1xt4", {"limit": "2GiB"}, ("soft",)),
    "wrong": Recipe(
        "a fraction above 1",
        LAPTOP,
        {"fraction": "1.5"},
        ("names",),
        (Difference(PRELOADED + RULE, NO_GPU, {"fraction": None, "gpus": "none"}),),
        (78,),
    ),
}
