#include "../alloc.h"
