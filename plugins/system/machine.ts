/** The names the relatives of this interface use. */
const platforms: ReadonlyMap<string, string> = new Map([
  ['darwin', 'macos'],
  ['win32', 'windows'],
])
const architectures: ReadonlyMap<string, string> = new Map([
  ['x64', 'x86_64'],
  ['arm64', 'aarch64'],
  ['ia32', 'x86'],
])

export const machine = (): { readonly platform: string; readonly arch: string } => ({
  platform: platforms.get(process.platform) ?? process.platform,
  arch: architectures.get(process.arch) ?? process.arch,
})
