// Functions that register the strategies. Each is defined in the source file of its strategy.
#pragma once

#include "distribute/strategy.h"

namespace dtrain {

void add_single(Registry<Strategy>& table);
void add_mirrored(Registry<Strategy>& table);
void add_placed(Registry<Strategy>& table);
void add_pipeline(Registry<Strategy>& table);
void add_sharded(Registry<Strategy>& table);

}  // namespace dtrain
