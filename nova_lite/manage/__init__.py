# SPDX-License-Identifier: Apache-2.0
"""The nouns of nova-lite-manage, a module each.

A noun's ``add_to`` adds its parser with its verbs; each verb sets ``run`` to a function of the parsed arguments and
the loaded configuration. What goes wrong is raised as a NovaLiteError, whose message is all that the operator sees.
"""
