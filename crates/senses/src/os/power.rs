//! Linux: where the machine's power comes from, by the kernel's power supply class
//! (Documentation/ABI/testing/sysfs-class-power).

use std::fs;
use std::path::Path;

use crate::Supply;

/// Where the power comes from; `None` on a machine without a battery, or where it is not told.
#[must_use]
pub fn supply() -> Option<Supply> {
    supply_in(Path::new("/sys/class/power_supply"))
}

fn supply_in(folder: &Path) -> Option<Supply> {
    let mut has_battery = false;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        // A mouse has a battery too; `scope` tells it apart.
        let is_systems = read("scope").trim() != "Device";
        match read("type").trim() {
            "Battery" if is_systems => has_battery = true,
            "Mains" | "USB" if read("online").trim() == "1" => return Some(Supply::Mains),
            _ => {}
        }
    }
    has_battery.then_some(Supply::Battery)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(supplies: &[(&str, &[(&str, &str)])]) -> Option<Supply> {
        let folder = tempfile::tempdir().unwrap();
        for (name, files) in supplies {
            fs::create_dir(folder.path().join(name)).unwrap();
            for (file, text) in *files {
                fs::write(folder.path().join(name).join(file), format!("{text}\n")).unwrap();
            }
        }
        supply_in(folder.path())
    }

    #[test]
    fn a_laptop_is_on_battery_only_when_nothing_is_plugged_in() {
        let battery = ("BAT0", &[("type", "Battery")][..]);
        let mains = |online| {
            (
                "AC",
                if online {
                    &[("type", "Mains"), ("online", "1")]
                } else {
                    &[("type", "Mains"), ("online", "0")]
                },
            )
        };
        let [on, off] = [true, false].map(mains).map(|(name, files)| (name, &files[..]));
        assert_eq!(machine(&[battery, on]), Some(Supply::Mains));
        assert_eq!(machine(&[battery, off]), Some(Supply::Battery));
        let charger = ("ucsi", &[("type", "USB"), ("online", "1")][..]);
        assert_eq!(machine(&[battery, off, charger]), Some(Supply::Mains));
    }

    #[test]
    fn a_desktop_with_a_wireless_mouse_has_no_battery() {
        let mouse = ("hidpp", &[("type", "Battery"), ("scope", "Device")][..]);
        assert_eq!(machine(&[mouse]), None);
        assert_eq!(machine(&[]), None);
    }
}
