// Registration functions of all strategies, one per source file.
#pragma once

#include "distribute/strategy.h"

namespace dtrain {

void add_single(Registry<Strategy>& table);
void add_mirrored(Registry<Strategy>& table);
void add_placed(Registry<Strategy>& table);
void add_pipeline(Registry<Strategy>& table);
void add_sharded(Registry<Strategy>& table);

}  // namespace dtrain
