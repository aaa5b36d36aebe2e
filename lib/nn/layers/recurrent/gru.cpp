#include "nn/layers/recurrent/recurrent.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

class Gru : public RecurrentLayer {
 public:
  explicit Gru(const RecurrentOptions& options) : RecurrentLayer(RecurrenceSpec::Kind::gru, options) {}
};

}  // namespace

void add_gru(Registry<Layer>& table) {
  table.add<Gru>("gru",
                 recurrent_schema(RecurrenceSpec::Kind::gru,
                                  "Gated recurrent unit (Cho et al. 2014). At every step of a sequence, an "
                                  "update gate and a reset gate control how the state changes."));
}

}  // namespace dtrain
