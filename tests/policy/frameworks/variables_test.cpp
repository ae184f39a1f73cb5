// SPDX-License-Identifier: Apache-2.0
#include "policy/frameworks/variables.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace cuslice::tests {
namespace {

const FrameworkVariable& variable_of(FrameworkKey key) { return framework_variables()[static_cast<size_t>(key)]; }

// An environment, and what becomes of one variable in it where `wanted` is called for.
std::string planned(FrameworkKey key, const char* wanted, std::vector<const char*> lines, const char* record = "") {
    lines.push_back(nullptr);
    FrameworkRecord kept{std::string_view(record)};
    const FrameworkChange change = plan_change(variable_of(key), wanted, lines.data(), kept);
    const char* const words[] = {"keep", "set", "remove"};
    return std::string(words[static_cast<size_t>(change)]) + " [" + std::string(kept.text().view()) + "]";
}

bool grows(std::vector<const char*> lines) {
    lines.push_back(nullptr);
    return grows_by_environment(lines.data());
}

}  // namespace

TEST_CASE("the table of frameworks' variables has a row for each key, in its place") {
    size_t place = 0;
    for (const FrameworkVariable& variable : framework_variables()) {
        CHECK(static_cast<size_t>(variable.key) == place++);
        CHECK(variable.name.data()[variable.name.size()] == '\0');
    }
    CHECK(place == kFrameworkKeys);
}

TEST_CASE("a framework's variable is set, kept or taken out by who has set it before") {
    const auto growth = FrameworkKey::tensorflow_growth;
    const char* const ours = "TF_FORCE_GPU_ALLOW_GROWTH=true";
    CHECK(planned(growth, "", {}) == "keep []");
    CHECK(planned(growth, "true", {}) == "set [TF_FORCE_GPU_ALLOW_GROWTH=true]");
    CHECK(planned(growth, "true", {ours}) == "keep []");
    CHECK(planned(growth, "", {ours}) == "keep []");
    CHECK(planned(growth, "true", {ours}, ours) == "keep [TF_FORCE_GPU_ALLOW_GROWTH=true]");
    CHECK(planned(growth, "", {ours}, ours) == "remove []");
    // Another value than cuslice's, or none any more, is the program's doing.
    CHECK(planned(growth, "true", {"TF_FORCE_GPU_ALLOW_GROWTH=false"}, ours) == "keep []");
    CHECK(planned(growth, "true", {"TF_FORCE_GPU_ALLOW_GROWTH="}) == "keep []");
    CHECK(planned(growth, "true", {}, ours) == "keep [TF_FORCE_GPU_ALLOW_GROWTH=true]");
    const auto reserve = FrameworkKey::tensorflow_reserve;
    CHECK(planned(reserve, "90", {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB=192"}, "TF_DEVICE_MIN_SYS_MEMORY_IN_MB=192") ==
          "set [TF_DEVICE_MIN_SYS_MEMORY_IN_MB=90]");
}

TEST_CASE("of JAX's two names for one thing, the newer one keeps the older from being set") {
    const auto fraction = FrameworkKey::jax_fraction;
    CHECK(planned(fraction, "0.8103", {"XLA_CLIENT_MEM_FRACTION=.4"}) == "keep []");
    CHECK(planned(fraction, "0.8103", {"XLA_CLIENT_MEM_FRACTION=.4", "XLA_PYTHON_CLIENT_MEM_FRACTION=0.5000"},
                  "XLA_PYTHON_CLIENT_MEM_FRACTION=0.5000") == "remove []");
}

TEST_CASE("a record of what was set is read as it is written, and nothing else of it") {
    const std::string text = "TF_FORCE_GPU_ALLOW_GROWTH=true,XLA_PYTHON_CLIENT_MEM_FRACTION=0.8103";
    CHECK(FrameworkRecord(text).text().view() == text);
    for (const char* other : {"", ",", "=", "PATH=/x", "TF_FORCE_GPU_ALLOW_GROWTH", "LD_PRELOAD=/x,,="})
        CHECK(FrameworkRecord(other).text().empty());
    // A value that is longer than any of ours names none that is there.
    const std::string longer = "TF_FORCE_GPU_ALLOW_GROWTH=" + std::string(5000, 'x');
    CHECK(planned(FrameworkKey::tensorflow_growth, "true", {longer.c_str()}, longer.c_str()) == "keep []");
}

TEST_CASE("growth is known by the environment alone where CUSLICE_ALLOCATOR says it of any GPU") {
    CHECK_FALSE(grows({}));
    CHECK(grows({"CUSLICE_ALLOCATOR=growth"}));
    CHECK(grows({"CUSLICE_ALLOCATOR=0=direct,GPU-5f=growth"}));
    CHECK_FALSE(grows({"CUSLICE_ALLOCATOR=0=direct,1=prealloc"}));
    CHECK_FALSE(grows({"CUSLICE_ALLOCATOR="}));
    CHECK_FALSE(grows({"CUSLICE_ALLOCATOR=growing"}));
    CHECK_FALSE(grows({"CUSLICE_ALLOCATOR=growth", "CUSLICE_NO_FRAMEWORK_ENV=yes"}));
    CHECK(grows({"CUSLICE_ALLOCATOR=growth", "CUSLICE_NO_FRAMEWORK_ENV=no"}));
}

TEST_CASE("a slice of nothing leaves nothing to share out") {
    FrameworkValues values;
    SliceRoom nothing;
    nothing.limited = true;
    values.add(nothing);
    CHECK(values.of(FrameworkKey::tensorflow_reserve).view() == "0");
    CHECK(values.of(FrameworkKey::jax_fraction).empty());
}

}  // namespace cuslice::tests
