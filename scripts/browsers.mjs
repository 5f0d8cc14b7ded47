// Browsers and software Vulkan for the tests: what is installed is used, else Debian's packages.
import fs from 'node:fs';
import path from 'node:path';
import { aptInstall } from './apt.mjs';
import { UserError, which } from './shell.mjs';

const PROGRAMS = {
  chromium: {
    names: ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome'],
    files: [
      '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
      'C:/Program Files/Google/Chrome/Application/chrome.exe',
    ],
    package: 'chromium',
  },
  firefox: {
    names: ['firefox-esr', 'firefox'],
    files: ['/Applications/Firefox.app/Contents/MacOS/firefox', 'C:/Program Files/Mozilla Firefox/firefox.exe'],
    package: 'firefox-esr',
  },
};

/** The program of a browser, or null. CHROMIUM=path and FIREFOX=path choose one. */
export function findBrowser(browser) {
  const { names, files } = PROGRAMS[browser];
  const chosen = process.env[browser.toUpperCase()];
  if (chosen) return chosen;
  return names.map(which).find((file) => file !== null) ?? files.find((file) => fs.existsSync(file)) ?? null;
}

/** The program of a browser, installed if need be. */
export async function ensureBrowser(browser) {
  if (!findBrowser(browser)) await aptInstall([PROGRAMS[browser].package], 'for the tests in a browser');
  const file = findBrowser(browser);
  if (!file) throw new UserError(`no ${browser} here`, `install it, or set ${browser.toUpperCase()}=/path/to/it`);
  return file;
}

/** chromedriver, which `wasm-bindgen-test-runner` drives Chromium with. */
export async function ensureChromedriver() {
  const find = () => process.env.CHROMEDRIVER ?? which('chromedriver');
  if (!find()) await aptInstall(['chromium-driver'], 'to run the kernel tests in Chromium');
  const file = find();
  if (!file)
    throw new UserError(
      'no chromedriver here',
      'install the one of your Chrome version, or set CHROMEDRIVER=/path/to/it',
    );
  return file;
}

/** The description file of Mesa's software Vulkan driver, or null. */
export function findLavapipe() {
  const folder = '/usr/share/vulkan/icd.d';
  const name = fs.existsSync(folder) && fs.readdirSync(folder).find((file) => /^lvp_icd.*\.json$/.test(file));
  return name ? path.join(folder, name) : null;
}

/** Software Vulkan, on Linux: Firefox is tested on it everywhere, native tests where there is no GPU. */
export async function ensureSoftwareVulkan() {
  if (process.platform === 'linux' && !findLavapipe())
    await aptInstall(['mesa-vulkan-drivers', 'libvulkan1'], 'for WebGPU without a GPU');
}
