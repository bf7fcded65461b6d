#include "../read.h"
