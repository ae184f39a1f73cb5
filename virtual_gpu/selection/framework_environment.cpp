// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/selection/framework_environment.h"

#include <stdlib.h>
#include <unistd.h>

#include "config/at_load.h"
#include "config/handover.h"
#include "config/load.h"
#include "virtual_gpu/selection/host_environment.h"

namespace cuslice {

namespace {

using Line = FixedText<320>;

// The lines belong to the environment from then on, so there is one for each variable and it is never freed.
class LastingLine {
  public:
    void put(std::string_view name, std::string_view value) {
        line_.clear();
        line_.append(name, '=', value);
        // putenv takes a pointer that it doesn't write through.
        putenv(const_cast<char*>(line_.c_str()));
    }

  private:
    Line line_;
};

constinit LastingLine the_lines[kFrameworkKeys];
// At the start, and in cuInit: none is written to once it is in the environment.
constinit LastingLine the_first_record, the_last_record;

CUSLICE_AT_LOAD bool has(const char* const* environment, std::string_view name) {
    return variable(environment, name).data() != nullptr;
}

void put_record(const FrameworkRecord& before, const FrameworkRecord& now, LastingLine& line) {
    const auto text = now.text();
    if (text.view() == before.text())
        return;
    if (text.empty()) {
        unsetenv(kFrameworkRecord.data());
    } else {
        line.put(kFrameworkRecord, text);
    }
}

// Planned while the environment stands still: the C library may free its array of lines when a line is added.
class Plan {
  public:
    explicit Plan(const char* const* lines)
        : lines_(lines), before_(variable(lines, kFrameworkRecord)), record_(before_) {}

    void add(const FrameworkVariable& one, const FrameworkValues& values) {
        Step& step = steps_[static_cast<size_t>(one.key)];
        step.value = values.of(one.key);
        step.change = plan_change(one, step.value, lines_, record_);
    }
    // No step, and nothing in the record.
    bool would_set(const FrameworkVariable& one, const FrameworkValues& values) const {
        FrameworkRecord unchanged = record_;
        return plan_change(one, values.of(one.key), lines_, unchanged) == FrameworkChange::set;
    }
    void carry_out(LastingLine& record) const {
        for (const FrameworkVariable& one : framework_variables()) {
            const auto place = static_cast<size_t>(one.key);
            const Step& step = steps_[place];
            if (step.change == FrameworkChange::set)
                the_lines[place].put(one.name, step.value);
            if (step.change == FrameworkChange::remove)
                unsetenv(one.name.data());
        }
        put_record(before_, record_, record);
    }

  private:
    struct Step {
        FrameworkChange change = FrameworkChange::keep;
        FrameworkValues::Text value;
    };

    const char* const* const lines_;
    const FrameworkRecord before_;
    FrameworkRecord record_;
    Step steps_[kFrameworkKeys];
};

void note_missed(const FrameworkVariable& variable, std::string_view value, MissedVariables& missed) {
    if (!missed.empty())
        missed.append(' ');
    missed.append(variable.name, '=', value);
}

}  // namespace

CUSLICE_AT_LOAD void set_growth_at_start() {
    if (environ == nullptr || has_more_rights() || has(environ, kHandOver))
        return;
    const bool grows = grows_by_environment(environ);
    if (!grows && !has(environ, kFrameworkRecord))
        return;
    FrameworkValues values;
    if (grows)
        values.grow();
    Plan plan(environ);
    for (const FrameworkVariable& one : framework_variables())
        if (one.read == FrameworkRead::at_start)
            plan.add(one, values);
    plan.carry_out(the_first_record);
}

void set_framework_variables(const FrameworkValues& values, MissedVariables& missed) {
    if (has_more_rights())
        return;
    const HostEnvironment environment;
    const bool launched = has(environment.lines(), kHandOver);
    Plan plan(environment.lines());
    for (const FrameworkVariable& one : framework_variables()) {
        if (one.read == FrameworkRead::after_cuinit) {
            plan.add(one, values);
        } else if (!launched && plan.would_set(one, values)) {
            note_missed(one, values.of(one.key), missed);
        }
    }
    plan.carry_out(the_last_record);
}

}  // namespace cuslice
