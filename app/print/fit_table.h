// What `check --fit` found, as people and programs read it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "estimate/what_fits.h"

namespace dtrain {

/// A table, the best first, and below it each as YAML to paste.
std::string fit_text(const RunConfig& config, const Machine& machine,
                     const std::vector<Candidate>& candidates);
/// {machine: {kind, devices, bytes, bytes_per_second}, estimated: true, candidates: [{name, yaml, recomputed:
/// [block], batch_size, fits, device, bytes, copy_bytes, step_seconds, samples_per_second, refusal}]}, the
/// best first.
Json fit_json(const RunConfig& config, const Machine& machine, const std::vector<Candidate>& candidates);

}  // namespace dtrain
