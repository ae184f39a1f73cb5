// SPDX-License-Identifier: Apache-2.0
// The manual: cuslice(1) and cuslice.toml(5), out of the one list of keys.
#include <set>

#include "cli/settings/arguments.h"
#include "cli/settings/help.h"
#include "cli/settings/help_options.h"
#include "cli/settings/own_options.h"

namespace cuslice::cli {
namespace {

// Text for troff: nothing in it is a request or an escape, and a dash is one that can be copied.
std::string plain(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (const char c : text) {
        if (line_start && (c == '.' || c == '\''))
            out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
        line_start = c == '\n';
    }
    return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }

std::string title(const std::string& name, const char* section, const std::string& version, const char* book) {
    return ".\\\" Printed by `cuslice help --man`.\n.TH " + name + " " + section + " \"\" \"" + plain(version) +
           "\" \"" + book + "\"\n";
}

std::string item(const std::string& term, const std::string& text) { return ".TP\n" + term + "\n" + text + "\n"; }

std::string sentence(const KeyTraits& traits) {
    return plain(traits.help) + ".\nDefault: " + plain(traits.default_value) + ".";
}

constexpr std::string_view kStart = R"(.SH NAME
cuslice \- a slice of a GPU for every CUDA program
.SH SYNOPSIS
.nf
\fBcuslice run\fR [\fIoptions\fR] \fB\-\-\fR \fIprogram\fR [\fIargs\fR]
\fBcuslice demo\fR [\fB\-\-json\fR] [\fIoptions\fR]
\fBcuslice devices\fR|\fBconfig\fR [\fB\-\-json\fR] [\fIoptions\fR]
\fBcuslice config\fR \fB\-\-explain\fR \fIPID\fR [\fB\-\-json\fR]
\fBcuslice ps\fR [\fB\-\-json\fR|\fB\-\-prometheus\fR|\fB\-\-wide\fR]
\fBcuslice ps\fR \fB\-\-job\fR \fINAME\fR [\fB\-\-json\fR]
\fBcuslice top\fR [\fB\-\-interval\fR \fITIME\fR] [\fB\-\-once\fR|\fB\-\-json\fR|\fB\-\-stream\fR]
\fBcuslice top\fR \fB\-\-nodes\fR \fILIST\fR [\fB\-\-over\fR \fICOMMAND\fR] [\fB\-\-once\fR] [\fB\-\-json\fR]
\fBcuslice set\fR \fB\-\-group\fR|\fB\-\-job\fR \fINAME\fR \fB\-\-limit\fR \fISIZE\fR
\fBcuslice stats\fR \fIPID\fR [\fB\-\-json\fR]
\fBcuslice plot\fR \fIFILE\fR... [\fB\-o\fR \fIOUT\fR] [\fB\-\-title\fR \fITEXT\fR] [\fB\-\-open\fR]
\fBcuslice cdi\fR [\fB\-o\fR \fIFILE\fR] [\fIoptions\fR]
\fBcuslice jupyter install\fR [\fIoptions\fR]
\fBcuslice doctor\fR [\fB\-\-json\fR] [\fIoptions\fR] [\fB\-\-\fR \fIprogram\fR [\fIargs\fR]]
\fBcuslice install\fR|\fBuninstall\fR \fB\-\-system\fR [\fB\-\-root\fR \fIDIR\fR]
\fBcuslice completion\fR \fBbash\fR|\fBzsh\fR|\fBfish\fR
\fBcuslice help\fR [\fICOMMAND\fR|\fBoptions\fR|\fBvalues\fR]
\fBcuslice version\fR
.fi
.SH DESCRIPTION
.B cuslice run
runs a program in a slice of each GPU's memory.
The program sees the slice as the whole GPU, and an allocation past it fails as on a full GPU.
The launcher becomes the program (same process id), and every process that the program starts is in a slice too.
.PP
Options end at
.B \-\-
or at the first word that is no option: what follows is the program's own.
)";

constexpr std::string_view kEnd = R"(.SH EXIT STATUS
.TP
the program's own
It was started.
.TP
.B 64
The command line is not understood.
.TP
.BR 65 ", " 66 ", " 73
.BR plot :
a file is no recording or has no rows; it can't be read; the picture can't be written.
.BR cdi ", " jupyter :
73: the file can't be written.
.TP
.B 69
There is no driver or no GPU, or no such job, group or process;
.BR plot :
there is no Python, or for an SVG or a PNG it lacks vl\-convert\-python.
.TP
.B 75
Others hold the memory; nothing was started.
.TP
.B 78
A setting or the installation is wrong; nothing was started.
.TP
.B 126
The program was found but cannot be started.
.TP
.B 127
There is no such program.
.SH FILES
.I ./cuslice.toml
(read by the launcher only),
.I ~/.config/cuslice/cuslice.toml
and
.I /etc/cuslice/cuslice.toml
hold settings, see
.BR cuslice.toml (5).
Ledgers are in
.IR /dev/shm/cuslice .
.SH EXAMPLES
.nf
cuslice run \-\-fraction 0.4 \-\- python train.py
cuslice run \-\-limit 0=4GiB,1=1GiB \-\- ./a.out
cuslice run \-\-gpus any \-\-fraction 0.4 \-\-wait \-\- python train.py
cuslice run \-\-split 0=4 \-\- ./a.out
cuslice run \-\-fake 4xh200 \-\- ./a.out
.fi
.SH SEE ALSO
.BR cuslice.toml (5),
.BR nvidia\-smi (1),
.BR ld.so (8)
)";

// "print JSON" as a sentence, with the commands that take it.
std::string own_sentence(const OwnOption& own) {
    std::string commands;
    for (const CommandName& command : command_names())
        if (own.is_of(command.command))
            commands.append(commands.empty() ? "" : ", ").append(command.name);
    return plain(own.help) + "\n(" + plain(commands) + ").";
}

// One item for all options of a name and a value.
std::string own_option_items() {
    std::string items;
    std::set<std::string> seen;
    for (const OwnOption& first : own_options()) {
        const std::string name = written_option(first);
        if (!seen.insert(name).second)
            continue;
        std::string sentences;
        for (const OwnOption& own : own_options())
            if (written_option(own) == name)
                sentences.append(sentences.empty() ? "" : "\n").append(own_sentence(own));
        items += item(bold(name), sentences);
    }
    return items;
}

std::string cuslice_page(const std::string& version) {
    std::string page = title("CUSLICE", "1", version, "User Commands") + std::string(kStart);
    page += ".SH COMMANDS\n";
    for (const CommandName& command : command_names())
        page += item(bold(command.name), plain(command.summary) + ".");
    page += ".SH OPTIONS\n";
    page += "Options of\n.BR run ;\n.B devices\nand\n.B config\ntake them too.\n";
    page += "Each option is also a variable and a key of a file.\n";
    for (const KeyTraits& traits : all_keys()) {
        std::string also;
        for (const CommandName& command : command_names()) {
            const bool shows = command.command == Command::ps || command.command == Command::top ||
                               command.command == Command::set || command.command == Command::stats;
            if (shows && takes(command.command, traits.key))
                also.append(also.empty() ? "" : ", ").append(plain(command.name));
        }
        page += item(bold(written_option(traits)) + ", " + bold(traits.variable),
                     sentence(traits) + (also.empty() ? "" : "\nAlso taken by: " + also + "."));
    }
    page += own_option_items();
    page += item(bold("-h") + ", " + bold("--help"), "Print help.");
    page += item(bold("--help-all"), "Print help, with each setting explained.");
    page += item(bold("-V") + ", " + bold("--version"), "Print the version.");
    return page + std::string(kEnd);
}

constexpr std::string_view kFileStart = R"(.SH NAME
cuslice.toml \- settings of cuslice
.SH DESCRIPTION
A file in TOML with the settings of
.BR cuslice (1):
.I ./cuslice.toml
(read by the launcher only),
.I ~/.config/cuslice/cuslice.toml
.RI ( $XDG_CONFIG_HOME ),
.IR /etc/cuslice/cuslice.toml ,
and the file that
.B \-\-config
or
.B CUSLICE_CONFIG
names.
Options and variables
.B CUSLICE_*
come before files.
Unknown tables and keys are errors.
.SH TABLES
.TP
before the first table
What holds for the process.
.TP
.B [memory]
Every GPU.
.TP
.B [gpu.X]
One GPU, by its index
.RB ( [gpu.0] ),
the start of its UUID
.RB ( [gpu.\(dqGPU\-5f\(dq] )
or its PCI id.
.TP
.BR [ceiling] ", " [ceiling.gpu.X]
In
.I /etc/cuslice/cuslice.toml
only: at most so much, whatever is asked for.
)";

constexpr std::string_view kFileEnd = R"(.SH EXAMPLE
.nf
log = \(dqinfo\(dq

[memory]
fraction = 0.4

[gpu.0]
limit = \(dq4GiB\(dq

[ceiling]
fraction = 0.5
.fi
.SH SEE ALSO
.BR cuslice (1)
)";

std::string file_page(const std::string& version) {
    std::string page = title("CUSLICE.TOML", "5", version, "File Formats") + std::string(kFileStart);
    for (const bool per_gpu : {true, false}) {
        page += per_gpu ? ".SH KEYS OF TABLES\n" : ".SH KEYS BEFORE THE FIRST TABLE\n";
        for (const KeyTraits& traits : all_keys()) {
            if (!traits.in_file || traits.per_gpu != per_gpu)
                continue;
            page += item(bold(traits.name) + " = " + plain(traits.placeholder),
                         sentence(traits) + (traits.may_be_ceiling ? "\nMay be a ceiling." : ""));
        }
    }
    return page + std::string(kFileEnd);
}

}  // namespace

std::string manual_page(const std::string& page, const std::string& version) {
    return page == "cuslice" ? cuslice_page(version) : file_page(version);
}

}  // namespace cuslice::cli
