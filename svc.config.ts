import { defineConfig } from 'svc/sdk'

// What every daemon started from this folder begins with. Later ones win: <home>/config.toml, SVC_… variables, flags.
// `svc config schema` describes every key. Secrets belong into config.toml or the environment.
export default defineConfig({
  listen_addr: '127.0.0.1:4545',
  plugins: {
    // Folders of further plugins, relative to this file.
    paths: [],
    // Built-in plugins that are not wanted.
    disabled: [],
  },
})
