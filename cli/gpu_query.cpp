#include "cli/gpu_query.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "cli/gpu_answer.h"
#include "cli/program_environment.h"
#include "config/resolve.h"

namespace cuslice::cli {
namespace {

// Where the child finds the pipe: the first descriptor after the standard ones.
constexpr int kAnswerDescriptor = 3;

std::string read_to_end(int descriptor) {
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return text;
        text.append(buffer, static_cast<std::size_t>(count));
    }
}

// The child's stdout goes to stderr: a driver that prints must not end up in our output.
int spawn_query(const Installation& installation, Environment& environment, const std::string& driver,
                const std::string& nvml, int answer, pid_t& child) {
    std::vector<std::string> words = {installation.executable, "query", std::to_string(kAnswerDescriptor), driver,
                                      nvml};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::vector<char*> lines = environment.pointers();

    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, answer, kAnswerDescriptor);
    const int code =
        ::posix_spawn(&child, installation.executable.c_str(), &actions, nullptr, arguments.data(), lines.data());
    ::posix_spawn_file_actions_destroy(&actions);
    return code;
}

Gpus query(const Installation& installation, Environment environment, const std::string& driver,
           const std::string& nvml) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {std::string("no pipe: ") + std::strerror(errno), {}};
    pid_t child = 0;
    const int code = spawn_query(installation, environment, driver, nvml, ends[1], child);
    ::close(ends[1]);
    const std::string answer = code == 0 ? read_to_end(ends[0]) : std::string();
    ::close(ends[0]);
    if (code != 0) return {installation.executable + ": " + std::strerror(code), {}};
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) return {"the driver ended the query with signal " + std::to_string(WTERMSIG(status)), {}};
    return parse_answer(answer);
}

}  // namespace

Gpus query_driver(const Environment& environment, const Settings& settings, const Installation& installation) {
    Environment raw = environment;
    remove_preload(raw);
    raw.unset("CUDA_VISIBLE_DEVICES");
    raw.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    if (const Entry* fake = find(settings, Key::fake)) {
        raw.set(traits_of(Key::fake).variable, fake->value);
        return query(installation, raw, installation.fake_driver(), installation.fake_folder + "/libnvidia-ml.so.1");
    }
    const Entry* driver = find(settings, Key::driver);
    return query(installation, raw, driver == nullptr ? "libcuda.so.1" : std::string(driver->value),
                 "libnvidia-ml.so.1");
}

Gpus query_as_program(Environment environment, const Installation& installation) {
    return query(installation, std::move(environment), "libcuda.so.1", "");
}

GpuIdentity identity_of(const Gpu& gpu, int index) {
    GpuIdentity identity;
    identity.index = index;
    gpu.uuid.copy(identity.uuid, sizeof identity.uuid - 1);
    gpu.pci.copy(identity.pci, sizeof identity.pci - 1);
    return identity;
}

}  // namespace cuslice::cli
