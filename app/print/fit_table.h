// Formats the results of `check --fit` as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "estimate/what_fits.h"

namespace dtrain {

/// Returns a table of the candidates, best first, followed by the YAML of each.
std::string fit_text(const RunConfig& config, const Machine& machine,
                     const std::vector<Candidate>& candidates);
/// Returns {machine: {kind, devices, bytes, bytes_per_second}, estimated: true, candidates: [{name, yaml,
/// recomputed: [block], batch_size, fits, device, bytes, copy_bytes, step_seconds, samples_per_second,
/// refusal}]}, best first.
Json fit_json(const RunConfig& config, const Machine& machine, const std::vector<Candidate>& candidates);

}  // namespace dtrain
