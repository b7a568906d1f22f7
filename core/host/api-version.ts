/**
 * The version of the modules that plugins import. The first number rises when a plugin has to be changed, the second
 * when something is added, the third when only behaviour is repaired.
 */
export const API_VERSION = '1.11.0'
