#include "nn/layers/recurrent/recurrent.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

class Lstm : public RecurrentLayer {
 public:
  explicit Lstm(const RecurrentOptions& options) : RecurrentLayer(RecurrenceSpec::Kind::lstm, options) {}
};

}  // namespace

void add_lstm(Registry<Layer>& table) {
  table.add<Lstm>(
      "lstm",
      recurrent_schema(
          RecurrenceSpec::Kind::lstm,
          "Long short-term memory (Hochreiter and Schmidhuber 1997). At every step of a sequence, an input "
          "gate, a forget gate and an output gate control how the state and the cell state change."));
}

}  // namespace dtrain
