// Creates report.html, a page that shows one run or compares several.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/run_files.h"

namespace dtrain {

/// Returns an HTML page that needs neither a network nor other files. Texts from users are embedded as data,
/// and the script of the page shows them as plain text. Curves are reduced to the resolution of a screen, but
/// keep their peaks. `made`: the time in the format of run.jsonl. `program`: e.g. "dtrain 0.1.0".
std::string report_page(std::span<const RunFiles> runs, const std::string& program, const std::string& made);

/// Returns true if the file at `path` is a report page of any version.
bool is_report_page(const std::string& path);

/// Returns the data that the page contains: {program, made, sweeps, varied, differences, larger_is_better,
/// runs: [...]}. A run has the class names for each of its tables. Used by tests.
Json report_data(std::span<const RunFiles> runs, const std::string& program, const std::string& made);

/// Returns the indices of the points of a curve to keep, in ascending order: the first point, the last point,
/// and the minimum and the maximum of each of several intervals between these two. Keeps at most `most`
/// points, but up to 4 if `most` is smaller. NaN is ignored.
std::vector<size_t> thin_curve(std::span<const double> values, size_t most);

}  // namespace dtrain
