/**
 * The version of the modules that plugins import. The first number rises when a plugin has to be changed, the second
 * when something is
 * added.
 */
export const API_VERSION = '1.0.0'
