// SPDX-License-Identifier: Apache-2.0
#include "cli/answer_question.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "cli/doctor/folder_probe.h"
#include "cli/doctor/loader_probe.h"
#include "cli/gpus/ask_child.h"
#include "cli/gpus/fake_check.h"
#include "cli/gpus/gpu_answer.h"
#include "cli/gpus/gpu_query.h"

namespace cuslice::cli {
namespace {

bool write_all(int descriptor, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
        const ssize_t count = ::write(descriptor, text.data() + at, text.size() - at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        at += static_cast<size_t>(count);
    }
    return true;
}

}  // namespace

int answer_question(const std::vector<std::string>& words) {
    if (words.size() < 3)
        return 1;
    const auto number_in = [](const std::string& word) {
        int number = -1;
        std::from_chars(word.data(), word.data() + word.size(), number);
        return number;
    };
    const std::string& question = words[1];
    std::string text;
    if (question == kAskDriver)
        text = write_answer(read_gpus(words[2], words.size() > 3 && words[3] == kAsPrograms));
    else if (question == kAskLoader)
        text = doctor::answer_of_loader();
    else if (question == kAskFolder)
        text = doctor::answer_of_folder(words[2]);
    else if (words.size() > 3 && question == kAskNvml)
        text = write_answer(read_nvml(words[2], static_cast<size_t>(number_in(words[3])),
                                      words.size() > 4 && words[4] == kWithSensors));
    else if (words.size() > 3)
        text = ask_fake_driver(words[2], words[3]);
    return write_all(number_in(words[0]), text) ? 0 : 1;
}

}  // namespace cuslice::cli
