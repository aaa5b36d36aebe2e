// report.html: one page that shows a run or compares several.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/run_files.h"

namespace dtrain {

/// Returns a page that needs no network and no other file. All user-provided text is embedded as data, which
/// the page's script shows as plain text. Curves are thinned to screen resolution but keep their peaks.
/// `made`: the time in run.jsonl's format; `program`: "dtrain 0.1.0".
std::string report_page(std::span<const RunFiles> runs, const std::string& program, const std::string& made);

/// Returns true if the file at `path` is a report page of any version.
bool is_report_page(const std::string& path);

/// Returns the page's data, for tests: {program, made, larger_is_better, runs: [...]}. Each run has the class
/// names of its tables, by table.
Json report_data(std::span<const RunFiles> runs, const std::string& program, const std::string& made);

/// Returns the indices of at most `most` points to keep of a curve, ascending: the first and last, and the
/// minimum and maximum of each interval between them. Ignores NaN.
std::vector<size_t> thin_curve(std::span<const double> values, size_t most);

}  // namespace dtrain
