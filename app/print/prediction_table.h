// Writes predictions as a CSV table or JSON lines, with the names of the run's targets and classes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/files/array_writer.h"
#include "run/run_config.h"

namespace dtrain {

/// A destination for text, written piece by piece.
class TextSink {
 public:
  virtual ~TextSink() = default;
  /// Throws Error if the text cannot be written.
  virtual void write(std::string_view text) = 0;
  /// Ends the text. Throws Error like write().
  virtual void finish() {}
};

/// Opens a file that appears under its name once it is finished.
std::unique_ptr<TextSink> open_text_file(const std::string& path);
/// Opens standard output. Drops text after its reader has closed the pipe.
std::unique_ptr<TextSink> open_standard_output();

/// One of the model's outputs, for display.
struct PredictedOutput {
  TensorSpec spec;                        // shape and type for one sample; has the layer's name
  std::vector<std::string> targets = {};  // names of the target's columns in the training file; may be empty
  // The class of each column. An output with a single column may have two: its number belongs to the second.
  std::vector<std::string> classes = {};
  double sum = 1;  // sum of the two classes' numbers, for an output with a single column
  std::optional<double> threshold = {};  // above this, the second of two classes is predicted

  bool has_labels = false;  // each class above 0.5 is predicted, instead of the class with the largest number

  bool is_binary() const { return classes.size() == 2 && spec.shape.elements() == 1; }
};

/// Returns an output of the configuration with its class names. A class without a name is called by its
/// index.
PredictedOutput predicted_output(const RunConfig& config, size_t head);

enum class TextFormat { csv, json_lines };

/// Opens a table with one line per sample: its id (or row number), then for each output the class and the
/// number of each class, or the numbers under the target's name. JSON lines use the CSV column titles as
/// keys, and an array for an output with several numbers. Without `with_classes`, writes only the numbers.
/// Forecasts (Dataset::forecast_steps) have one CSV line per step, with the id, a column "step" (from 1) and
/// the columns of the outputs. `inputs` must outlive the table.
std::unique_ptr<ArrayWriter> open_prediction_table(std::unique_ptr<TextSink> sink, TextFormat format,
                                                   std::vector<PredictedOutput> outputs, bool with_classes,
                                                   const Dataset& inputs);

}  // namespace dtrain
