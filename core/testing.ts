/** What the tests of a plugin import, as `svc/testing`: a daemon with the plugin in the process of the test. */
export { startPlugin } from './testing/plugin-test.ts'
export type { FakeFetch, PluginTest, PluginTestOptions, Registered, TestAnswer } from './testing/plugin-test.ts'
export { FakeModel } from './testing/fake-model.ts'
export type { FakeAnswer } from './testing/fake-model.ts'
