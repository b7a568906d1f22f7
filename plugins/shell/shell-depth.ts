/** Programs that run what they are given as text or as further words: a pattern must name them word for word. */
const shells: ReadonlySet<string> = new Set(
  `sh bash dash zsh ksh ksh93 mksh fish csh tcsh ash busybox toybox pwsh powershell cmd cmd.exe env nohup timeout
  nice ionice chrt taskset setsid stdbuf sudo doas su runuser xargs parallel time watch script unshare nsenter
  chroot setpriv prlimit flock strace ltrace gdb ssh ld.so expect socat nc ncat netcat make vim vi ex ed screen
  tmux at batch crontab docker podman awk gawk mawk nawk sed`.split(/\s+/),
)
/** Interpreters, and the options that are followed by code. */
const interpreters: readonly (readonly [name: RegExp, inline: RegExp])[] = [
  [/^python[\d.]*$|^pypy[\d.]*$/, /^-[a-zA-Z]*[cmi]|^-$/],
  [
    /^(node|nodejs|bun)$/,
    /^-[a-zA-Z]*[epri]|^--(eval|interactive|print|require|import|loader|experimental-loader)|^-$/,
  ],
  [/^deno$/, /^(eval|repl)$|^-$/],
  [/^(perl|ruby)[\d.]*$/, /^-[a-zA-Z\d]*[eErmM]|^-$/],
  [/^php[\d.]*$/, /^-[a-zA-Z]*[rBRF]|^-$/],
  [/^lua(jit)?[\d.]*$/, /^-[a-zA-Z]*[el]|^-$/],
  [/^Rscript$|^R$/, /^-e|^--file=/],
  [/^osascript$|^tclsh[\d.]*$|^julia$|^ghci?$|^irb$|^scala$|^groovy$|^elixir$|^erl$/, /^-/],
  [/^find$/, /^-(exec|execdir|ok|okdir)$/],
  [/^git$/, /^-c|^--config-env|^--exec-path|^-p$|^--upload-pack|^--receive-pack/],
  [/^tar$/, /^--(to-command|checkpoint-action|use-compress-program|rsh-command)|^-I/],
]

/**
 * The word that makes a command run inline code, which must be the last literal word of the pattern; `undefined` for an
 * ordinary command.
 */
export function shellDepth(words: readonly string[], names: readonly string[]): number | undefined {
  if (names.some((name) => shells.has(name))) return 0
  for (const [name, inline] of interpreters) {
    if (!names.some((each) => name.test(each))) continue
    // Without a file it reads code from its input: only a pattern of this one word allows that.
    if (words.length === 1) return names.some((each) => /^(find|git|tar)$/.test(each)) ? undefined : 1
    const at = words.findIndex((word, index) => index > 0 && inline.test(word))
    if (at > 0) return at
  }
  return undefined
}
