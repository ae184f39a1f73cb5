// The parts of the launcher that need no process.
#include "cli/environment.h"

#include "cli/gpu_answer.h"
#include "cli/json.h"
#include "cli/table.h"
#include "tests/catch.h"

namespace cuslice::tests {

TEST_CASE("an environment keeps its order, and one value where one is set") {
    const char* const lines[] = {"A=1", "AB=2", "A=3", "odd", "C=", nullptr};
    cli::Environment environment(lines);
    CHECK(environment.get("A") == "1");
    CHECK(environment.get("C") == "");
    CHECK_FALSE(environment.get("odd"));
    CHECK_FALSE(environment.get("B"));
    environment.set("A", "x=y");
    environment.set("D", "4");
    CHECK(environment.lines() == std::vector<std::string>{"A=x=y", "AB=2", "odd", "C=", "D=4"});
    environment.unset("AB");
    environment.unset("odd");
    CHECK(environment.lines() == std::vector<std::string>{"A=x=y", "odd", "C=", "D=4"});
}

TEST_CASE("JSON keeps the order of its fields, and any bytes of a path become text") {
    CHECK(cli::json_text({{"b", nullptr}, {"a", "é€\"\n"}}) == "{\n  \"b\": null,\n  \"a\": \"é€\\\"\\n\"\n}\n");
    CHECK(cli::json_text("\xff/\xc3") == "\"\ufffd/\ufffd\"\n");
}

TEST_CASE("a table's columns are as wide as their widest cell") {
    CHECK(cli::format_table({{"A", "LONG"}, {"écrit", "x"}}) == "A      LONG\nécrit  x\n");
}

TEST_CASE("an answer about GPUs comes back as it was, and one that stops short is a failure") {
    cli::Gpus gpus;
    gpus.list.push_back({0, "a name", "GPU-1", "0000:01:00.0", 123, 45});
    gpus.list.push_back({1, "", "GPU-2", "", 0, std::nullopt});
    const std::string text = cli::write_answer(gpus);
    const cli::Gpus back = cli::parse_answer(text);
    CHECK(back.failure.empty());
    REQUIRE(back.list.size() == 2);
    CHECK(back.list[0].name == "a name");
    CHECK(back.list[0].free == 45);
    CHECK(back.list[1].uuid == "GPU-2");
    CHECK_FALSE(back.list[1].free);
    CHECK(cli::parse_answer("").failure == "the query ended without an answer");
    CHECK_FALSE(cli::parse_answer(text.substr(0, text.size() - 5)).failure.empty());
    gpus.failure = "no driver";
    CHECK(cli::parse_answer(cli::write_answer(gpus)).failure == "no driver");
}

}  // namespace cuslice::tests
