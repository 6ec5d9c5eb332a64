"""Rules for a cut, one per file; a new file in this folder is found by the name of its class."""

from fbeta.decisions.rules.constant import Constant
from fbeta.decisions.rules.exact import Exact
from fbeta.decisions.rules.plugin import Plugin
from fbeta.decisions.rules.pooled import Pooled
from fbeta.decisions.rules.rule import Rule, as_rule, names
from fbeta.decisions.rules.shrunk import Shrunk
from fbeta.spelling import import_modules

import_modules(__name__, __path__)

__all__ = ["Constant", "Exact", "Plugin", "Pooled", "Rule", "Shrunk", "as_rule", "names"]
