// dtrain report: writes one page that shows a run or compares several runs.
#include "report/report.h"

#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/files/new_file.h"
#include "base/files/paths.h"
#include "cli/console.h"
#include "cli/invocation.h"
#include "cli/options.h"
#include "commands.h"

namespace dtrain {

namespace {

struct ReportOptions {
  OutputOptions output;
  std::vector<std::string> runs;
  std::string file;
};

/// Throws UserError if the page would replace a file that is not a report page.
void reject_foreign_page(const std::string& path) {
  if (file_type(path) == FileType::nothing || is_report_page(path)) return;
  throw UserError(
      fmt::format("{}: expected a report of dtrain or a new file, but something else exists at this path; "
                  "give another name with --output",
                  path));
}

void report(const ReportOptions& options) {
  reject_foreign_page(options.file);
  std::vector<RunFiles> runs;
  std::set<std::string> seen;
  for (const std::string& given : options.runs) {
    std::vector<std::string> paths = find_runs(given);
    if (paths.empty()) paths.push_back(given);  // read_run_files() reports the error
    for (const std::string& path : paths)
      if (file_type(path) != FileType::directory || seen.insert(real_path(path)).second)
        runs.push_back(read_run_files(path));
  }
  const std::string program = "dtrain " DTRAIN_VERSION, made = format_time_now();
  if (!options.file.empty()) {
    const std::string page = report_page(runs, program, made);
    write_new_file(options.file, page);
  }
  if (options.output.json) print_json(report_data(runs, program, made));
  if (options.output.text()) print_text(fmt::format("wrote {}\n", options.file));
}

}  // namespace

void add_report(CommandLine& line) {
  Command command =
      line.add_command("report", "Write an HTML page that shows a run or compares several runs");
  const auto options = std::make_shared<ReportOptions>();
  options->file = "report.html";
  command.add_option("RUN", options->runs, "Run directories, or folders of run directories").required();
  command.add_option("--output,-o", options->file, "The page to write (default: report.html)")
      .type_name("FILE.html");
  add_output_options(command, options->output);
  command.callback([options] { report(*options); });
}

}  // namespace dtrain
