// SPDX-License-Identifier: Apache-2.0
// Becomes runc, whose container gets this program's environment, as it does under the other tools.
//
//   run_bundle FOLDER NAME PROGRAM [ARGUMENT]...
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

int main(int count, char** words) {
    if (count < 4)
        return 64;
    const std::string folder = words[1], state = folder + "/state";
    nlohmann::json bundle = nlohmann::json::parse(std::ifstream(folder + "/template.json"));
    nlohmann::json& process = bundle["process"];
    process["args"] = std::vector<std::string>(words + 3, words + count);
    process["env"] = nlohmann::json::array();
    for (char** line = environ; *line != nullptr; ++line)
        process["env"].push_back(*line);
    std::ofstream(folder + "/config.json") << bundle.dump();
    ::execlp("runc", "runc", "--root", state.c_str(), "run", "--bundle", folder.c_str(), words[2], nullptr);
    std::fprintf(stderr, "runc: %s\n", std::strerror(errno));
    return 127;
}
