// Training lengths and learning rates in `dtrain new` configurations. bench/templates.py measures them.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

struct TrainingLength {
  int64_t epochs = 0, batch_size = 0;
  int64_t patience = 0;  // epochs without improvement before early stopping
};

TrainingLength length_for_rows(int64_t rows);
TrainingLength length_for_pictures(int64_t pictures);

/// Returns the lines `epochs` and `batch_size` of the section `train`.
std::string epochs_text(const TrainingLength& length);
/// Throws UserError if there are too few samples to draw splits from. `samples`: "3 texts".
void check_can_be_split(const std::string& path, int64_t count, const std::string& samples);
/// Returns the line of a split that is drawn from the training split.
std::string drawn_split(const char* name, bool stratify);
/// Returns the rest of `train` after loss and metrics (a learning rate that decays over all epochs, early
/// stopping), and the section `checkpoint`.
std::string schedule_text(const TrainingLength& length);

inline constexpr const char* kClassWeightText =
    "  class_weight: balanced              # some classes are rare: their samples count more\n";

}  // namespace dtrain
