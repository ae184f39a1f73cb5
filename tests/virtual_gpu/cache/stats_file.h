// SPDX-License-Identifier: Apache-2.0
// The file in which this process tells others what its caches hold, as another one reads it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "policy/ledger/process_identity.h"
#include "policy/stats/file.h"

namespace cuslice::tests {

class OwnStatsFile {
  public:
    /// The one in this folder.
    explicit OwnStatsFile(const std::string& folder) {
        const ledger::ProcessIdentity self = ledger::this_process();
        stats::NameText name;
        stats::write_name({self.pid_namespace, self.pid, self.start_time}, name);
        const int file = open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0)
            return;
        void* memory = mmap(nullptr, sizeof(stats::File), PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (memory != MAP_FAILED)
            file_ = static_cast<stats::File*>(memory);
    }
    ~OwnStatsFile() {
        if (file_)
            munmap(file_, sizeof(stats::File));
    }
    OwnStatsFile(const OwnStatsFile&) = delete;
    OwnStatsFile& operator=(const OwnStatsFile&) = delete;

    /// Null if there is none.
    const stats::File* get() const { return file_; }

  private:
    stats::File* file_ = nullptr;
};

}  // namespace cuslice::tests
