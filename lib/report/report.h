// report.html: one page that shows a run, or compares several.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/run_files.h"

namespace dtrain {

/// A page that needs no network and no other file. All that came from people stands in it as data, which its
/// script shows as text. Curves are thinned to what a screen can show, their peaks kept. `made`: the time, as
/// run.jsonl writes it; `program`: "dtrain 0.1.0".
std::string report_page(std::span<const RunFiles> runs, const std::string& program, const std::string& made);

/// Whether there is a file whose first bytes are those of such a page, of whatever version.
bool is_report_page(const std::string& path);

/// What the page is given, for tests: {program, made, larger_is_better, runs: [...]}. A run has the names of
/// the classes that its tables count, by table.
Json report_data(std::span<const RunFiles> runs, const std::string& program, const std::string& made);

/// Which of so many values a curve of at most `most` points keeps, ascending: the first and last, and of each
/// stretch between them the least and the greatest. What is no number is passed over.
std::vector<size_t> thin_curve(std::span<const double> values, size_t most);

}  // namespace dtrain
